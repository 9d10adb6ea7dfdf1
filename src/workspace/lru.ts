/** A map of bounded size: whoever was not used for longest leaves, and so does whoever nobody used for `idleMs`. */
export class Lru<T> {
  readonly #most: number
  readonly #idleMs: number
  readonly #left: (value: T) => void
  readonly #kept = new Map<string, { readonly value: T; usedAt: number }>() // the latest used last
  #latest: string | undefined // a map that is changed all the time is made anew all the time

  constructor(most: number, idleMs: number, left: (value: T) => void = () => {}) {
    this.#most = most
    this.#idleMs = idleMs
    this.#left = left
  }

  get size(): number {
    return this.#kept.size
  }

  get(key: string): T | undefined {
    const entry = this.#kept.get(key)
    if (!entry) return undefined
    if (key !== this.#latest) {
      this.#kept.delete(key)
      this.#kept.set(key, entry)
      this.#latest = key
    }
    entry.usedAt = Date.now()
    return entry.value
  }

  set(key: string, value: T): void {
    this.delete(key)
    this.#kept.set(key, { value, usedAt: Date.now() })
    this.#latest = key
    for (const [oldest, { usedAt }] of this.#kept) {
      if (this.#kept.size <= this.#most && usedAt >= Date.now() - this.#idleMs) return
      this.delete(oldest)
    }
  }

  delete(key: string): void {
    const entry = this.#kept.get(key)
    if (entry && this.#kept.delete(key)) this.#left(entry.value)
  }

  entries(): [string, T][] {
    return [...this.#kept].map(([key, { value }]) => [key, value])
  }

  values(): T[] {
    return [...this.#kept.values()].map(({ value }) => value)
  }

  clear(): void {
    for (const key of [...this.#kept.keys()]) this.delete(key)
  }
}
