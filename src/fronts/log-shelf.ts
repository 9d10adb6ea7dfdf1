import type { EventLog } from './event-log.ts'

interface Shelved {
  readonly log: EventLog
  readonly until: number
  readonly forget: () => void
}

/** Where logs of finished streams wait for a client that comes back, and what all logs together may hold. */
export class LogShelf {
  readonly #limit: number
  readonly #queues = new Map<number, Shelved[]>() // by lifetime, each in order of expiry
  #used = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get isSpent(): boolean {
    return this.#used > this.#limit
  }

  /** Bytes that all logs hold now. */
  get used(): number {
    return this.#used
  }

  add(bytes: number): void {
    this.#used += bytes
    // Discarding takes bytes away and comes back here: only what adds looks for room.
    if (bytes > 0) while (this.isSpent && this.#discardOldest()) {}
  }

  /** Keeps a finished log for a while; `forget` is called when it goes. */
  shelve(log: EventLog, lifetimeMs: number, forget: () => void): void {
    const queue = this.#queues.get(lifetimeMs) ?? []
    this.#queues.set(lifetimeMs, queue)
    queue.push({ log, until: Date.now() + lifetimeMs, forget })
  }

  sweep(now: number): void {
    for (const [lifetimeMs, queue] of this.#queues) {
      const alive = queue.findIndex(shelved => shelved.until > now)
      for (const shelved of queue.splice(0, alive < 0 ? queue.length : alive))
        if (shelved.log.hasReader)
          queue.push({ ...shelved, until: now + lifetimeMs }) // it still reads
        else discard(shelved)
    }
  }

  #discardOldest(): boolean {
    let oldest: Shelved[] | undefined
    for (const queue of this.#queues.values())
      if (queue[0] && (!oldest?.[0] || queue[0].until < oldest[0].until)) oldest = queue
    const shelved = oldest?.shift()
    if (shelved) discard(shelved)
    return shelved !== undefined
  }
}

const discard = ({ log, forget }: Shelved): void => {
  log.clear()
  forget()
}
