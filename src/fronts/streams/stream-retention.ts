import type { EventLog } from './event-log.ts'

interface Shelved {
  readonly log: EventLog
  readonly until: number
  readonly forget: () => void
}

/** Something that holds bytes of streams for an owner. */
interface LogHolder {
  readonly owner: string // whose share they count for
  readonly bytes: number
  /** Drops what it may drop; absent where everything still has to be sent. */
  trim?(): void
}

interface LogLimits {
  readonly total: number // bytes
  readonly perOwner: number
}

/** What one owner has. */
interface Share {
  used: number
  readonly holders: Set<LogHolder> // those that can be trimmed
  readonly queues: Map<number, Shelved[]> // by lifetime, each in order of expiry
}

/**
 * Where logs of finished streams wait for a client that comes back, and what all logs together may hold. An owner beyond
 * its share loses its own oldest logs; when there is too much in all, the owner with the most does.
 */
export class StreamRetention {
  readonly #limits: LogLimits
  readonly #shares = new Map<string, Share>()
  #used = 0

  constructor(limits: LogLimits) {
    this.#limits = limits
  }

  /** Bytes that all logs hold now. */
  get used(): number {
    return this.#used
  }

  /** Owners of whom something is kept. */
  get owners(): number {
    return this.#shares.size
  }

  /** Whether this owner has to make room. */
  isSpent(owner: string): boolean {
    const share = this.#shares.get(owner)
    if (!share) return false
    return share.used > this.#limits.perOwner || (this.#isFull && share === this.#largest())
  }

  /** A holder has so many bytes more, or less. */
  add(holder: LogHolder, bytes: number): void {
    const share = this.#shareOf(holder.owner)
    share.used += bytes
    this.#used += bytes
    if (holder.bytes === 0) share.holders.delete(holder)
    else if (holder.trim) share.holders.add(holder)
    // Discarding takes bytes away and comes back here: only what adds looks for room.
    if (bytes > 0) this.#makeRoom(share)
    this.#forget(holder.owner, share)
  }

  /** Keeps a finished log for a while; `forget` is called when it goes. */
  shelve(log: EventLog, lifetimeMs: number, forget: () => void): void {
    const { queues } = this.#shareOf(log.owner)
    const queue = queues.get(lifetimeMs) ?? []
    queues.set(lifetimeMs, queue)
    queue.push({ log, until: Date.now() + lifetimeMs, forget })
  }

  sweep(now: number): void {
    for (const [owner, share] of this.#shares) {
      for (const [lifetimeMs, queue] of share.queues) {
        const alive = queue.findIndex(shelved => shelved.until > now)
        for (const shelved of queue.splice(0, alive < 0 ? queue.length : alive))
          if (shelved.log.hasReader)
            queue.push({ ...shelved, until: now + lifetimeMs }) // it still reads
          else discard(shelved)
        if (queue.length === 0) share.queues.delete(lifetimeMs)
      }
      this.#forget(owner, share)
    }
  }

  get #isFull(): boolean {
    return this.#used > this.#limits.total
  }

  #shareOf(owner: string): Share {
    const share = this.#shares.get(owner) ?? { used: 0, holders: new Set(), queues: new Map() }
    this.#shares.set(owner, share)
    return share
  }

  #forget(owner: string, { used, queues, holders }: Share): void {
    if (used === 0 && queues.size === 0 && holders.size === 0) this.#shares.delete(owner)
  }

  #makeRoom(share: Share): void {
    while (share.used > this.#limits.perOwner && discardOldest(share));
    while (this.#isFull) {
      const largest = this.#largest() ?? share
      const before = this.#used
      if (!discardOldest(largest)) for (const holder of [...largest.holders]) holder.trim?.()
      if (this.#used === before) return // the rest is on its way to its readers
    }
  }

  #largest(): Share | undefined {
    let largest: Share | undefined
    for (const share of this.#shares.values()) if (!largest || share.used > largest.used) largest = share
    return largest
  }
}

const discardOldest = ({ queues }: Share): boolean => {
  let oldest: Shelved[] | undefined
  for (const queue of queues.values())
    if (queue[0] && (!oldest?.[0] || queue[0].until < oldest[0].until)) oldest = queue
  const shelved = oldest?.shift()
  if (shelved) discard(shelved)
  return shelved !== undefined
}

const discard = ({ log, forget }: Shelved): void => {
  log.clear()
  forget()
}
