/** Lets so many through at a time; the others wait in line. */
export class Starts {
  readonly #most: number
  readonly #line: (() => void)[] = []
  #inside = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Settles with the function to leave by; leaving twice counts once. */
  async enter(): Promise<() => void> {
    if (this.#inside < this.#most) this.#inside++
    else await new Promise<void>(resolve => this.#line.push(resolve)) // the place is handed over
    let hasLeft = false
    return () => {
      if (hasLeft) return
      hasLeft = true
      const next = this.#line.shift()
      if (next) next()
      else this.#inside--
    }
  }
}

/** Shared by every server of this process: a machine has one CPU to start programs with. */
export const STARTS = new Starts(4)
