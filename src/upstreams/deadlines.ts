/** An entry that expires when its deadline has passed. */
export interface DeadlineEntry {
  deadline: number // in the time of Date.now(); the owner may move it at any time
  slot: number // its index in Deadlines; -1: not added
  expire(): void
}

/** Expires everything that waits for one server: one interval timer for all entries, none while there are none. */
export class Deadlines {
  readonly #tickMs: number
  // Not a Set: when a Set grows, its old table keeps the new one alive, and with it every call that was ever added, until
  // the next full garbage collection. That made a call cost a quarter more.
  readonly #entries: DeadlineEntry[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(tickMs: number) {
    this.#tickMs = tickMs
  }

  add(entry: DeadlineEntry): void {
    if (entry.slot >= 0) return
    entry.slot = this.#entries.push(entry) - 1
    if (this.#timer) return
    this.#timer = setInterval(() => this.#tick(), this.#tickMs)
    this.#timer.unref()
  }

  delete(entry: DeadlineEntry): void {
    const { slot } = entry
    if (slot < 0) return
    entry.slot = -1
    const last = this.#entries.pop()
    if (!last || last === entry) return
    this.#entries[slot] = last
    last.slot = slot
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    for (const entry of this.#entries.splice(0)) entry.slot = -1
  }

  #tick(): void {
    const now = Date.now()
    for (const entry of this.#entries.filter(({ deadline }) => deadline <= now)) {
      this.delete(entry)
      entry.expire()
    }
    if (this.#entries.length === 0) this.close()
  }
}
