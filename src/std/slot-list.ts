/** An entry of a SlotList. It can be in one list at a time. */
export interface SlotEntry {
  slot: number // its index in the list; -1: it is in none
}

/**
 * What is under way: everything that adds itself when it begins and removes itself when it ends. In no order: the last
 * entry takes the place of a removed one.
 *
 * For what comes and goes with each call, use this and neither a Map nor a Set. V8 replaces the table of a Map or Set once it is
 * full of added and removed entries. If the table is in the old generation, the new one is allocated there, too. A dead table
 * keeps the entries it had until the next full garbage collection, and scavenges move them to the old generation: in the end
 * most calls that have finished. That made a call cost a quarter more.
 */
export class SlotList<T extends SlotEntry> {
  readonly #entries: T[] = []

  get size(): number {
    return this.#entries.length
  }

  /** The entries as they are now: the list may change while they are gone through. */
  get entries(): T[] {
    return [...this.#entries]
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#entries[Symbol.iterator]()
  }

  /** Has no effect on an entry that is in the list. */
  add(entry: T): void {
    if (entry.slot < 0) entry.slot = this.#entries.push(entry) - 1
  }

  /** False if the entry was in no list. */
  delete(entry: T): boolean {
    const { slot } = entry
    if (slot < 0) return false
    entry.slot = -1
    const last = this.#entries.pop()
    if (!last || last === entry) return true
    this.#entries[slot] = last
    last.slot = slot
    return true
  }

  clear(): void {
    for (const entry of this.#entries) entry.slot = -1
    this.#entries.length = 0
  }
}
