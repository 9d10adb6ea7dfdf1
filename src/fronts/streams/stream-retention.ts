import { type SlotEntry, SlotList } from '../../std/slot-list.ts'
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
    let owners = 0
    for (const share of this.#shares.values()) if (!isEmpty(share)) owners++
    return owners
  }

  isOverLimit(owner: string): boolean {
    const share = this.#shares.get(owner)
    if (!share) return false
    return share.bytes > this.#limits.perOwner || (this.#isFull && share === this.#largest())
  }

  /** Records that a holder has gained `change` bytes, or lost them if negative. */
  add(holder: LogHolder | TrimmedHolder, change: number): void {
    const share = this.#shareOf(holder.owner)
    share.bytes += change
    this.#bytes += change
    if (holder.trim) {
      if (holder.bytes === 0) share.holders.delete(holder)
      else share.holders.add(holder)
    }
    // Dropping a log calls this again with a negative change, which must not look for room once more.
    if (change > 0) this.#makeRoom(share)
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
      if (isEmpty(share)) this.#shares.delete(owner) // here and not when it gets empty: a stream may have events at once
    }
  }

  get #isFull(): boolean {
    return this.#bytes > this.#limits.total
  }

  #shareOf(owner: string): OwnerShare {
    const share = this.#shares.get(owner) ?? { bytes: 0, holders: new SlotList(), queues: new Map() }
    this.#shares.set(owner, share)
    return share
  }

  #makeRoom(share: OwnerShare): void {
    while (share.bytes > this.#limits.perOwner && dropOldest(share));
    while (this.#isFull) {
      const largest = this.#largest() ?? share
      const before = this.#bytes
      if (!dropOldest(largest)) for (const holder of largest.holders.entries) holder.trim()
      if (this.#bytes === before) return // the rest still has to be sent
    }
  }

  #largest(): OwnerShare | undefined {
    let largest: OwnerShare | undefined
    for (const share of this.#shares.values()) if (!largest || share.bytes > largest.bytes) largest = share
    return largest
  }
}

const isEmpty = ({ bytes, queues, holders }: OwnerShare): boolean =>
  bytes === 0 && queues.size === 0 && holders.size === 0

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
  readonly trim?: undefined // everything still has to be sent
}

/** A holder that can drop some of its bytes. */
interface TrimmedHolder extends Omit<LogHolder, 'trim'>, SlotEntry {
  /** Drops what it may drop. */
  trim(): void
}

interface RetentionLimits {
  readonly total: number // bytes
  readonly perOwner: number // bytes
}

interface OwnerShare {
  bytes: number
  readonly holders: SlotList<TrimmedHolder> // those that can be trimmed
  readonly queues: Map<number, RetainedLog[]> // by lifetime, each in order of expiry
}
