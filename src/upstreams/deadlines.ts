/** Something that is given up when its time has passed. */
export interface DeadlineEntry {
  deadline: number // as Date.now() counts
  slot: number // where the watch keeps it; -1: not watched
  expire(): void
}

/** Looks after everything that waits for one server: one timer for all, none while nothing waits. */
export class Deadlines {
  readonly #tickMs: number
  // Not a Set: each time a Set outgrows its table, the old table keeps the new one alive, and with it every call
  // that ever was in it, until the next full collection. It made a call cost a quarter more.
  readonly #watched: DeadlineEntry[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(tickMs: number) {
    this.#tickMs = tickMs
  }

  add(watched: DeadlineEntry): void {
    if (watched.slot >= 0) return
    watched.slot = this.#watched.push(watched) - 1
    if (this.#timer) return
    this.#timer = setInterval(() => this.#tick(), this.#tickMs)
    this.#timer.unref()
  }

  delete(watched: DeadlineEntry): void {
    const { slot } = watched
    if (slot < 0) return
    watched.slot = -1
    const last = this.#watched.pop()
    if (!last || last === watched) return
    this.#watched[slot] = last
    last.slot = slot
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const watched of this.#watched.splice(0)) watched.slot = -1
  }

  #tick(): void {
    const now = Date.now()
    for (const watched of this.#watched.filter(({ deadline }) => deadline <= now)) {
      this.delete(watched)
      watched.expire()
    }
    if (this.#watched.length > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
