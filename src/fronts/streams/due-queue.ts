/** Things that are due again and again, in the order in which they are, so that looking costs nothing. */
export class DueQueue<T> {
  readonly #everyMs: number
  readonly #act: (thing: T) => void
  readonly #due = new Map<T, number>()

  constructor(everyMs: number, act: (thing: T) => void) {
    this.#everyMs = everyMs
    this.#act = act
  }

  /** Due for the first time when one interval has passed. */
  add(thing: T, now: number = Date.now()): void {
    this.#due.set(thing, now + this.#everyMs)
  }

  delete(thing: T): void {
    this.#due.delete(thing)
  }

  /** Acts on everything that is due. */
  run(now: number): void {
    for (const [thing, due] of this.#due) {
      if (due > now) return
      this.#due.delete(thing)
      this.#due.set(thing, now + this.#everyMs)
      this.#act(thing)
    }
  }
}
