interface CacheEntry<T> {
  readonly value: T
  readonly group: string | undefined
  usedAt: number
}

interface CacheOptions<T> {
  readonly onEvict?: (value: T) => void // also called for deleted and replaced entries
  /** Limit for the entries of one group, so that one caller cannot evict the entries of others. */
  readonly mostPerGroup?: number
}

/** A map of bounded size. Evicts the least recently used entries, and entries unused for `idleMs`. */
export class BoundedCache<T> {
  readonly #most: number
  readonly #idleMs: number
  readonly #onEvict: (value: T) => void
  readonly #mostPerGroup: number
  readonly #kept = new Map<string, CacheEntry<T>>() // the most recently used is last
  readonly #groups = new Map<string, number>() // number of entries
  #latest: string | undefined // not reordered again: deleting and adding to a Map often rebuilds it

  constructor(most: number, idleMs: number, { onEvict, mostPerGroup }: CacheOptions<T> = {}) {
    this.#most = most
    this.#idleMs = idleMs
    this.#onEvict = onEvict ?? (() => {})
    this.#mostPerGroup = mostPerGroup ?? most
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

  /** Evicts the oldest entry of the same group first. */
  set(key: string, value: T, group?: string): void {
    this.delete(key)
    this.#kept.set(key, { value, group, usedAt: Date.now() })
    this.#latest = key
    if (group !== undefined && this.#count(group, 1) > this.#mostPerGroup) this.#deleteOldestOf(group)
    for (const [oldest, { usedAt }] of this.#kept) {
      if (this.#kept.size <= this.#most && usedAt >= Date.now() - this.#idleMs) return
      this.delete(oldest)
    }
  }

  delete(key: string): void {
    const entry = this.#kept.get(key)
    if (!entry) return
    this.#kept.delete(key)
    if (entry.group !== undefined) this.#count(entry.group, -1)
    this.#onEvict(entry.value)
  }

  /** Deletes the least recently used entry; false if only one is left. */
  deleteOldest(): boolean {
    if (this.#kept.size < 2) return false
    for (const key of this.#kept.keys()) {
      this.delete(key)
      break
    }
    return true
  }

  groupOf(key: string): string | undefined {
    return this.#kept.get(key)?.group
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

  #deleteOldestOf(group: string): void {
    for (const [key, entry] of this.#kept) if (entry.group === group) return this.delete(key)
  }

  #count(group: string, by: 1 | -1): number {
    const count = (this.#groups.get(group) ?? 0) + by
    if (count > 0) this.#groups.set(group, count)
    else this.#groups.delete(group)
    return count
  }
}
