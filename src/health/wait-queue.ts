import type { RpcError } from '../protocol/errors.ts'

/** A call that waits for its turn. */
export interface Waiter {
  readonly principal: string // turns go round among these
  start(): void
  reject(error: RpcError): void
}

/** Lets so many calls run at a time; the others wait, and each principal in turn has one let in. */
export class WaitQueue {
  readonly #most: number
  readonly #longest: number
  readonly #lines = new Map<string, Set<Waiter>>() // whose turn it is comes first
  #running = 0
  #waiting = 0
  #isLetting = false

  constructor(most: number, longest: number) {
    this.#most = most
    this.#longest = longest
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Starts the call now or later; false where too many wait already. */
  enter(waiter: Waiter): boolean {
    if (this.#running < this.#most && this.#waiting === 0) {
      this.#running++
      waiter.start()
      return true
    }
    if (this.#waiting >= this.#longest) return false
    const line = this.#lines.get(waiter.principal) ?? new Set()
    this.#lines.set(waiter.principal, line.add(waiter))
    this.#waiting++
    return true
  }

  /** Does not want to wait any more. */
  leave(waiter: Waiter): void {
    const line = this.#lines.get(waiter.principal)
    if (!line?.delete(waiter)) return
    this.#waiting--
    if (line.size === 0) this.#lines.delete(waiter.principal)
  }

  /** A call that ran is over, or rests. */
  release(): void {
    this.#running--
    this.#letIn()
  }

  /** A call that rested goes on, however many run. */
  resume(): void {
    this.#running++
  }

  /** Tells everybody who waits that there is nothing to wait for. */
  rejectAll(error: RpcError): void {
    const waiters = [...this.#lines.values()].flatMap(line => [...line])
    this.#lines.clear()
    this.#waiting = 0
    for (const waiter of waiters) waiter.reject(error)
  }

  /** Not by calling itself: a call may be over before its start returns. */
  #letIn(): void {
    if (this.#isLetting) return
    this.#isLetting = true
    try {
      while (this.#running < this.#most) {
        const next = this.#next()
        if (!next) break
        this.#running++
        next.start()
      }
    } finally {
      this.#isLetting = false
    }
  }

  #next(): Waiter | undefined {
    for (const [who, line] of this.#lines)
      for (const waiter of line) {
        line.delete(waiter)
        this.#lines.delete(who)
        if (line.size > 0) this.#lines.set(who, line) // behind the others
        this.#waiting--
        return waiter
      }
    return undefined
  }
}
