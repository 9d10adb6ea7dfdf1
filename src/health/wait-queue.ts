import type { RpcError } from '../protocol/errors.ts'

/** A call that waits for a slot. */
export interface Waiter {
  readonly principal: string // the queue serves principals in turn
  start(): void
  reject(error: RpcError): void
}

/** A bounded queue before a bounded number of slots; free slots go to the waiting principals in turn. */
export class WaitQueue {
  readonly #slots: number
  readonly #maxWaiting: number
  readonly #waiters = new Map<string, Set<Waiter>>() // by principal; the first one is served next
  #running = 0
  #waiting = 0
  #isStarting = false

  constructor(slots: number, maxWaiting: number) {
    this.#slots = slots
    this.#maxWaiting = maxWaiting
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Starts the call now or later; false if the queue is full. */
  enter(waiter: Waiter): boolean {
    if (this.#running < this.#slots && this.#waiting === 0) {
      this.#running++
      waiter.start()
      return true
    }
    if (this.#waiting >= this.#maxWaiting) return false
    const waiters = this.#waiters.get(waiter.principal) ?? new Set()
    this.#waiters.set(waiter.principal, waiters.add(waiter))
    this.#waiting++
    return true
  }

  /** Removes a call that no longer wants to wait. */
  leave(waiter: Waiter): void {
    const waiters = this.#waiters.get(waiter.principal)
    if (!waiters?.delete(waiter)) return
    this.#waiting--
    if (waiters.size === 0) this.#waiters.delete(waiter.principal)
  }

  /** A running call has ended or pauses. */
  release(): void {
    this.#running--
    this.#startNext()
  }

  /** A paused call goes on, even if that exceeds the slots. */
  resume(): void {
    this.#running++
  }

  rejectAll(error: RpcError): void {
    const waiters = [...this.#waiters.values()].flatMap(each => [...each])
    this.#waiters.clear()
    this.#waiting = 0
    for (const waiter of waiters) waiter.reject(error)
  }

  /** Not recursive: a call may have ended before its `start` returns. */
  #startNext(): void {
    if (this.#isStarting) return
    this.#isStarting = true
    try {
      while (this.#running < this.#slots) {
        const next = this.#takeNext()
        if (!next) break
        this.#running++
        next.start()
      }
    } finally {
      this.#isStarting = false
    }
  }

  #takeNext(): Waiter | undefined {
    for (const [principal, waiters] of this.#waiters)
      for (const waiter of waiters) {
        waiters.delete(waiter)
        this.#waiters.delete(principal)
        if (waiters.size > 0) this.#waiters.set(principal, waiters) // behind the other principals
        this.#waiting--
        return waiter
      }
    return undefined
  }
}
