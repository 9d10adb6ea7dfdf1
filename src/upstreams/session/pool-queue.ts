/** A caller that waits for a session. */
export interface PoolWaiter {
  /** There is room, which the caller takes before this returns. */
  start(): void
  refuse(): void
}

interface QueuedWaiter {
  readonly waiter: PoolWaiter
  readonly until: number
}

const WAIT_MS = 5000
const POLL_MS = 100
const MOST_WAITING = 1000 // of one owner

/** Callers that wait for room in a pool, in order for each owner. One timer polls for all of them. */
export class PoolQueue {
  readonly #makeRoom: (owner: string) => boolean
  readonly #queues = new Map<string, QueuedWaiter[]>() // by owner
  #timer: NodeJS.Timeout | undefined

  /** `makeRoom` returns whether an owner may open one more session. */
  constructor(makeRoom: (owner: string) => boolean) {
    this.#makeRoom = makeRoom
  }

  /** Starts the waiter as soon as there is room for its owner, or refuses it after five seconds. */
  join(owner: string, waiter: PoolWaiter): void {
    const queue = this.#queues.get(owner) ?? []
    if (queue.length >= MOST_WAITING) return waiter.refuse()
    queue.push({ waiter, until: Date.now() + WAIT_MS })
    this.#queues.set(owner, queue)
    this.#timer ??= setInterval(() => this.#poll(), POLL_MS)
  }

  #poll(): void {
    const now = Date.now()
    for (const [owner, queue] of this.#queues) {
      while (queue.length > 0 && this.#makeRoom(owner)) queue.shift()?.waiter.start()
      while (queue[0] && queue[0].until <= now) queue.shift()?.waiter.refuse()
      if (queue.length === 0) this.#queues.delete(owner)
    }
    if (this.#queues.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
