import type { EventLog } from './event-log.ts'

const SLOTS = 15

/** One timer for everything that is due now and then: keep-alives, idle sessions, old logs. */
export class KeepAlive {
  readonly #wheel: Set<EventLog>[] = Array.from({ length: SLOTS }, () => new Set())
  readonly #chores: ((now: number) => void)[] = []
  readonly #timer: NodeJS.Timeout
  #slot = 0

  /** Each stream gets a comment every `keepAliveMs`, spread over the slots of a wheel. */
  constructor(keepAliveMs: number) {
    this.#timer = setInterval(() => this.#tick(), Math.max(20, keepAliveMs / SLOTS))
    this.#timer.unref()
  }

  /** Runs at every tick. */
  each(chore: (now: number) => void): void {
    this.#chores.push(chore)
  }

  /** Keeps the readers of a stream alive until the returned function is called. */
  keepAlive(log: EventLog): () => void {
    // The slot just served is the one that comes round last.
    const slot = this.#wheel[(this.#slot + SLOTS - 1) % SLOTS] as Set<EventLog>
    slot.add(log)
    return () => slot.delete(log)
  }

  /** How many of them somebody is reading. */
  get streams(): number {
    let count = 0
    for (const slot of this.#wheel) for (const log of slot) if (log.hasReader) count++
    return count
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    const now = Date.now()
    for (const log of this.#wheel[this.#slot] as Set<EventLog>) log.keepAlive()
    this.#slot = (this.#slot + 1) % SLOTS
    for (const chore of this.#chores) chore(now)
  }
}
