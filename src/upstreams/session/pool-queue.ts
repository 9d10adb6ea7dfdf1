/** A caller that waits for a session. */
export interface PoolWaiter {
  /** There is room: takes it before this returns. */
  start(): void
  refuse(): void
}

interface Waiting {
  readonly waiter: PoolWaiter
  readonly until: number
}

const WAIT_MS = 5000
const LOOK_MS = 100
const MOST_WAITING = 1000 // of one owner

/** Callers that wait for room in a pool, each owner's in their order. One timer looks for all of them. */
export class PoolQueue {
  readonly #hasRoom: (owner: string) => boolean
  readonly #lines = new Map<string, Waiting[]>()
  #timer: NodeJS.Timeout | undefined

  /** `hasRoom` makes room if it can. */
  constructor(hasRoom: (owner: string) => boolean) {
    this.#hasRoom = hasRoom
  }

  /** Starts the waiter as soon as there is room for its owner, or refuses it. */
  join(owner: string, waiter: PoolWaiter): void {
    const line = this.#lines.get(owner) ?? []
    if (line.length >= MOST_WAITING) return waiter.refuse()
    line.push({ waiter, until: Date.now() + WAIT_MS })
    this.#lines.set(owner, line)
    this.#timer ??= setInterval(() => this.#look(), LOOK_MS)
  }

  #look(): void {
    const now = Date.now()
    for (const [owner, line] of this.#lines) {
      while (line.length > 0 && this.#hasRoom(owner)) line.shift()?.waiter.start()
      while (line[0] && line[0].until <= now) line.shift()?.waiter.refuse()
      if (line.length === 0) this.#lines.delete(owner)
    }
    if (this.#lines.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
