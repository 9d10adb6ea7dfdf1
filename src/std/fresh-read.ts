/**
 * Runs a read for callers that need one which begins after their call. One runs at a time, and all that call meanwhile share
 * the next one.
 */
export class FreshRead<T> {
  readonly #read: () => Promise<T>
  #running: Promise<unknown> | undefined
  #next: Promise<T> | undefined

  constructor(read: () => Promise<T>) {
    this.#read = read
  }

  run(): Promise<T> {
    if (!this.#running) return this.#start()
    this.#next ??= this.#running.then(() => {
      this.#next = undefined
      return this.#start()
    })
    return this.#next
  }

  #start(): Promise<T> {
    const result = this.#read()
    const running: Promise<void> = result.then(
      () => {},
      () => {},
    )
    this.#running = running
    void running.then(() => {
      if (this.#running === running) this.#running = undefined
    })
    return result
  }
}
