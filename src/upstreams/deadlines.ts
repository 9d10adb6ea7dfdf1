import { type SlotEntry, SlotList } from '../std/slot-list.ts'

/** An entry that expires when its deadline has passed. */
export interface DeadlineEntry extends SlotEntry {
  deadline: number // in the time of Date.now(); the owner may move it at any time
  expire(): void
}

/** Expires everything that waits for one server: one interval timer for all entries, none while there are none. */
export class Deadlines {
  readonly #tickMs: number
  readonly #entries = new SlotList<DeadlineEntry>()
  #timer: NodeJS.Timeout | undefined

  constructor(tickMs: number) {
    this.#tickMs = tickMs
  }

  add(entry: DeadlineEntry): void {
    this.#entries.add(entry)
    if (this.#timer) return
    this.#timer = setInterval(() => this.#tick(), this.#tickMs)
    this.#timer.unref()
  }

  delete(entry: DeadlineEntry): void {
    this.#entries.delete(entry)
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#entries.clear()
  }

  #tick(): void {
    const now = Date.now()
    for (const entry of this.#entries.entries) {
      if (entry.deadline > now || !this.#entries.delete(entry)) continue
      entry.expire()
    }
    if (this.#entries.size === 0) this.close()
  }
}
