/** One piece of work at a time: callers that need it meanwhile share the running one. */
export class SingleFlight<T = void> {
  #running: Promise<T> | undefined

  /** The work in progress. */
  get running(): Promise<T> | undefined {
    return this.#running
  }

  run(work: () => Promise<T>): Promise<T> {
    this.#running ??= work().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }
}
