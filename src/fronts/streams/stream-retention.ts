import type { EventLog } from './event-log.ts'

/**
 * Retains logs of finished streams for clients that reconnect, and bounds the bytes of all logs. An owner above its
 * limit loses its own oldest logs; if the total is exceeded, the owner with the most bytes does.
 */
export class StreamRetention {
  readonly #limits: RetentionLimits
  readonly #shares = new Map<string, OwnerShare>()
  #bytes = 0

  constructor(limits: RetentionLimits) {
    this.#limits = limits
  }

  /** Bytes that all logs hold now. */
  get bytes(): number {
    return this.#bytes
  }

  /** Number of owners that have any bytes or logs here. */
  get owners(): number {
    return this.#shares.size
  }

  isOverLimit(owner: string): boolean {
    const share = this.#shares.get(owner)
    if (!share) return false
    return share.bytes > this.#limits.perOwner || (this.#isFull && share === this.#largest())
  }

  /** Records that a holder has gained `change` bytes, or lost them if negative. */
  add(holder: LogHolder, change: number): void {
    const share = this.#shareOf(holder.owner)
    share.bytes += change
    this.#bytes += change
    if (holder.bytes === 0) share.holders.delete(holder)
    else if (holder.trim) share.holders.add(holder)
    // Dropping a log calls this again with a negative change, which must not look for room once more.
    if (change > 0) this.#makeRoom(share)
    this.#deleteIfEmpty(holder.owner, share)
  }

  /** Retains a finished log for `lifetimeMs`; `onDrop` is called when it is dropped. */
  retain(log: EventLog, lifetimeMs: number, onDrop: () => void): void {
    const { queues } = this.#shareOf(log.owner)
    const queue = queues.get(lifetimeMs) ?? []
    queues.set(lifetimeMs, queue)
    queue.push({ log, expiresAt: Date.now() + lifetimeMs, onDrop })
  }

  /** Drops the logs that have expired; one that a client is reading gets another lifetime. */
  sweep(now: number): void {
    for (const [owner, share] of this.#shares) {
      for (const [lifetimeMs, queue] of share.queues) {
        const alive = queue.findIndex(({ expiresAt }) => expiresAt > now)
        for (const retained of queue.splice(0, alive < 0 ? queue.length : alive))
          if (retained.log.hasReader) queue.push({ ...retained, expiresAt: now + lifetimeMs })
          else drop(retained)
        if (queue.length === 0) share.queues.delete(lifetimeMs)
      }
      this.#deleteIfEmpty(owner, share)
    }
  }

  get #isFull(): boolean {
    return this.#bytes > this.#limits.total
  }

  #shareOf(owner: string): OwnerShare {
    const share = this.#shares.get(owner) ?? { bytes: 0, holders: new Set(), queues: new Map() }
    this.#shares.set(owner, share)
    return share
  }

  #deleteIfEmpty(owner: string, { bytes, queues, holders }: OwnerShare): void {
    if (bytes === 0 && queues.size === 0 && holders.size === 0) this.#shares.delete(owner)
  }

  #makeRoom(share: OwnerShare): void {
    while (share.bytes > this.#limits.perOwner && dropOldest(share));
    while (this.#isFull) {
      const largest = this.#largest() ?? share
      const before = this.#bytes
      if (!dropOldest(largest)) for (const holder of [...largest.holders]) holder.trim?.()
      if (this.#bytes === before) return // the rest still has to be sent
    }
  }

  #largest(): OwnerShare | undefined {
    let largest: OwnerShare | undefined
    for (const share of this.#shares.values()) if (!largest || share.bytes > largest.bytes) largest = share
    return largest
  }
}

const dropOldest = ({ queues }: OwnerShare): boolean => {
  let oldest: RetainedLog[] | undefined
  for (const queue of queues.values())
    if (queue[0] && (!oldest?.[0] || queue[0].expiresAt < oldest[0].expiresAt)) oldest = queue
  const retained = oldest?.shift()
  if (retained) drop(retained)
  return retained !== undefined
}

const drop = ({ log, onDrop }: RetainedLog): void => {
  log.clear()
  onDrop()
}

interface RetainedLog {
  readonly log: EventLog
  readonly expiresAt: number
  readonly onDrop: () => void
}

/** Holds bytes of streams on behalf of an owner. */
interface LogHolder {
  readonly owner: string // whose quota the bytes count for
  readonly bytes: number
  /** Drops what it may drop; absent if everything still has to be sent. */
  trim?(): void
}

interface RetentionLimits {
  readonly total: number // bytes
  readonly perOwner: number // bytes
}

interface OwnerShare {
  bytes: number
  readonly holders: Set<LogHolder> // those that can be trimmed
  readonly queues: Map<number, RetainedLog[]> // by lifetime, each in order of expiry
}
