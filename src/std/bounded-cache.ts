interface CacheEntry<T> {
  readonly key: string
  readonly value: T
  readonly group: string | undefined
  usedAt: number
  older: CacheEntry<T> | undefined // the next one in the order of last use
  newer: CacheEntry<T> | undefined
}

interface CacheOptions<T> {
  readonly onEvict?: (value: T) => void // also called for deleted and replaced entries
  /** Limit for the entries of one group, so that one caller cannot evict the entries of others. */
  readonly mostPerGroup?: number
}

/**
 * A map of bounded size. Evicts the least recently used entries, and entries unused for `idleMs`. The entries themselves form
 * the order of use: deleting and adding to a Map at each use often replaces its table, as SlotList explains.
 */
export class BoundedCache<T> {
  readonly #most: number
  readonly #idleMs: number
  readonly #onEvict: (value: T) => void
  readonly #mostPerGroup: number
  readonly #kept = new Map<string, CacheEntry<T>>()
  readonly #groups = new Map<string, number>() // number of entries
  #oldest: CacheEntry<T> | undefined
  #newest: CacheEntry<T> | undefined

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
    if (entry !== this.#newest) {
      this.#unlink(entry)
      this.#append(entry)
    }
    entry.usedAt = Date.now()
    return entry.value
  }

  /** Evicts the oldest entry of the same group first. */
  set(key: string, value: T, group?: string): void {
    this.delete(key)
    const entry: CacheEntry<T> = { key, value, group, usedAt: Date.now(), older: undefined, newer: undefined }
    this.#kept.set(key, entry)
    this.#append(entry)
    if (group !== undefined && this.#count(group, 1) > this.#mostPerGroup) this.#deleteOldestOf(group)
    for (let oldest = this.#oldest; oldest; oldest = this.#oldest) {
      if (this.#kept.size <= this.#most && oldest.usedAt >= Date.now() - this.#idleMs) return
      this.delete(oldest.key)
    }
  }

  delete(key: string): void {
    const entry = this.#kept.get(key)
    if (!entry) return
    this.#kept.delete(key)
    this.#unlink(entry)
    if (entry.group !== undefined) this.#count(entry.group, -1)
    this.#onEvict(entry.value)
  }

  /** Deletes the least recently used entry; false if only one is left. */
  deleteOldest(): boolean {
    if (this.#kept.size < 2 || !this.#oldest) return false
    this.delete(this.#oldest.key)
    return true
  }

  groupOf(key: string): string | undefined {
    return this.#kept.get(key)?.group
  }

  entries(): [string, T][] {
    return this.#inOrder().map(({ key, value }) => [key, value])
  }

  values(): T[] {
    return this.#inOrder().map(({ value }) => value)
  }

  clear(): void {
    for (const { key } of this.#inOrder()) this.delete(key)
  }

  #deleteOldestOf(group: string): void {
    for (let entry = this.#oldest; entry; entry = entry.newer) if (entry.group === group) return this.delete(entry.key)
  }

  #inOrder(): CacheEntry<T>[] {
    const entries: CacheEntry<T>[] = []
    for (let entry = this.#oldest; entry; entry = entry.newer) entries.push(entry)
    return entries
  }

  #append(entry: CacheEntry<T>): void {
    entry.older = this.#newest
    if (this.#newest) this.#newest.newer = entry
    else this.#oldest = entry
    this.#newest = entry
  }

  #unlink(entry: CacheEntry<T>): void {
    const { older, newer } = entry
    if (older) older.newer = newer
    else this.#oldest = newer
    if (newer) newer.older = older
    else this.#newest = older
    entry.older = entry.newer = undefined
  }

  #count(group: string, by: 1 | -1): number {
    const count = (this.#groups.get(group) ?? 0) + by
    if (count > 0) this.#groups.set(group, count)
    else this.#groups.delete(group)
    return count
  }
}
