/** A set of listeners. One that throws keeps no other from being called. */
export class Listeners<Value = void> {
  readonly #all = new Set<(value: Value) => void>()

  /** Returns a function that removes the listener. */
  add(listener: (value: Value) => void): () => void {
    const own = (value: Value): void => listener(value) // the same function may be added twice
    this.#all.add(own)
    return () => void this.#all.delete(own)
  }

  get size(): number {
    return this.#all.size
  }

  call(value: Value): void {
    for (const listener of [...this.#all]) {
      try {
        listener(value)
      } catch (error) {
        queueMicrotask(() => {
          throw error // an error of the program: reported like every other, after the listeners
        })
      }
    }
  }
}

/** Listeners by topic. */
export class TopicListeners {
  readonly #topics = new Map<string, Listeners>()

  on(topic: string, listener: () => void): () => void {
    const listeners = this.#topics.get(topic) ?? new Listeners()
    this.#topics.set(topic, listeners)
    const remove = listeners.add(listener)
    return () => {
      remove()
      if (listeners.size === 0 && this.#topics.get(topic) === listeners) this.#topics.delete(topic)
    }
  }

  call(topic: string): void {
    this.#topics.get(topic)?.call()
  }

  callAll(): void {
    for (const listeners of [...this.#topics.values()]) listeners.call()
  }
}
