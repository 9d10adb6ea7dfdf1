const SILENT_MS = 2500

/** Limits concurrent starts; further starts are queued. A slot is freed when the start ends, or after `silentMs`. */
export class StartLimit {
  readonly #most: number
  readonly #silentMs: number
  readonly #line: (() => void)[] = []
  #inside = 0

  /** `silentMs`: after which a start that has not come to an end gives its place to the next; it goes on. */
  constructor(most: number, silentMs = SILENT_MS) {
    this.#most = most
    this.#silentMs = silentMs
  }

  /** Settles with the function to leave by; leaving twice counts once. */
  async enter(): Promise<() => void> {
    if (this.#inside < this.#most) this.#inside++
    else await new Promise<void>(resolve => this.#line.push(resolve)) // the place is handed over
    let hasLeft = false
    const leave = (): void => {
      clearTimeout(late)
      if (hasLeft) return
      hasLeft = true
      const next = this.#line.shift()
      if (next) next()
      else this.#inside--
    }
    const late = setTimeout(leave, this.#silentMs)
    late.unref()
    return leave
  }
}

/** Shared by every server of this process: a machine has one CPU to start programs with. */
export const START_LIMIT = new StartLimit(4)
