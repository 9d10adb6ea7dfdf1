/** Limits on items and bytes for one owner, and on items in total. */
export interface QuotaLimits {
  readonly perOwner: number
  readonly bytesPerOwner?: number
  readonly total: number
}

interface Share<T> {
  readonly items: Map<T, number> // with its bytes; the oldest first
  bytes: number
}

/**
 * Limits what the gateway stores for its callers. An owner over its limit loses its oldest items; if there are too many
 * items in total, the owner with the most loses some. So an owner with few items loses none to others, unless every
 * owner has only one.
 */
export class Quota<T extends object> {
  readonly #limits: QuotaLimits
  readonly #rank: ((item: T) => number) | undefined
  readonly #shares = new Map<string, Share<T>>()
  readonly #owners = new Map<T, string>()

  /** The item of the lowest rank is evicted first; without ranks, the oldest. */
  constructor(limits: QuotaLimits, rank?: (item: T) => number) {
    this.#limits = limits
    this.#rank = rank
  }

  get size(): number {
    return this.#owners.size
  }

  get items(): T[] {
    return [...this.#owners.keys()]
  }

  /** Adds an item and returns the evicted ones, which are no longer counted. */
  add(owner: string, item: T, bytes = 0): T[] {
    const share = this.#shares.get(owner) ?? { items: new Map(), bytes: 0 }
    this.#shares.set(owner, share)
    this.#owners.set(item, owner)
    share.items.set(item, bytes)
    share.bytes += bytes
    const evicted: T[] = []
    const evictFrom = (items: ReadonlyMap<T, unknown>): boolean => {
      const victim = this.#firstOf(items, item)
      if (!victim) return false
      this.delete(victim)
      evicted.push(victim)
      return true
    }
    while (this.#isOver(share) && evictFrom(share.items));
    while (this.size > this.#limits.total && evictFrom(this.#largest(share)));
    return evicted
  }

  delete(item: T): void {
    const owner = this.#owners.get(item)
    const share = owner === undefined ? undefined : this.#shares.get(owner)
    if (owner === undefined || !share) return
    this.#owners.delete(item)
    share.bytes -= share.items.get(item) ?? 0
    share.items.delete(item)
    if (share.items.size === 0) this.#shares.delete(owner)
  }

  #isOver({ items, bytes }: Share<T>): boolean {
    const { perOwner, bytesPerOwner = Number.POSITIVE_INFINITY } = this.#limits
    return items.size > perOwner || bytes > bytesPerOwner
  }

  /** The items of the owner with the most; all items if every owner has only one. The oldest is first. */
  #largest(first: Share<T>): ReadonlyMap<T, unknown> {
    let largest = first
    for (const share of this.#shares.values()) if (share.items.size > largest.items.size) largest = share
    return largest.items.size > 1 ? largest.items : this.#owners
  }

  /** The item to evict, never the newest. */
  #firstOf(items: ReadonlyMap<T, unknown>, newest: T): T | undefined {
    let first: T | undefined
    let lowest = Number.POSITIVE_INFINITY
    for (const item of items.keys()) {
      if (item === newest) continue
      if (!this.#rank) return item
      const rank = this.#rank(item)
      if (first && rank >= lowest) continue
      first = item
      lowest = rank
    }
    return first
  }
}
