import { hash } from 'node:crypto'

interface Node<K, V> {
  readonly key: K
  readonly value: V
  next: Node<K, V> | undefined // in the same chain
}

const FEWEST = 8 // chains
const SEED = Math.floor(Math.random() * 2 ** 31) // so that a client cannot choose ids that share a chain
const LONG_KEY = 1024 // characters, above which SHA-256 takes less time; ordinary clients send shorter ids

/**
 * Values by key, for what is added when a call begins and removed when it ends. A Map would keep finished calls in memory,
 * as SlotList explains. A removed node refers to no other one, and it has no memory of its own while it is empty.
 */
export class CallTable<K extends string | number, V> {
  #chains: (Node<K, V> | undefined)[] | undefined // absent while empty; their number is a power of two
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The keys as they are now, in no order. */
  get keys(): K[] {
    return this.#nodes().map(({ key }) => key)
  }

  /** The values as they are now, in no order. */
  get values(): V[] {
    return this.#nodes().map(({ value }) => value)
  }

  get(key: K): V | undefined {
    const chains = this.#chains
    if (!chains) return undefined
    for (let node = chains[chainOf(key, chains.length)]; node; node = node.next) if (node.key === key) return node.value
    return undefined
  }

  /** The key must not be in the table. */
  add(key: K, value: V): void {
    this.#chains ??= createChains(FEWEST)
    if (this.#size >= this.#chains.length) this.#grow(this.#chains)
    link(this.#chains, { key, value, next: undefined })
    this.#size++
  }

  /** Removes and returns the value of a key. */
  delete(key: K): V | undefined {
    const chains = this.#chains
    if (!chains) return undefined
    const at = chainOf(key, chains.length)
    let before: Node<K, V> | undefined
    let node = chains[at]
    while (node && node.key !== key) {
      before = node
      node = node.next
    }
    if (!node) return undefined
    if (before) before.next = node.next
    else chains[at] = node.next
    node.next = undefined
    if (--this.#size === 0) this.#chains = undefined
    return node.value
  }

  #nodes(): Node<K, V>[] {
    const nodes: Node<K, V>[] = []
    for (const first of this.#chains ?? []) for (let node = first; node; node = node.next) nodes.push(node)
    return nodes
  }

  #grow(old: (Node<K, V> | undefined)[]): void {
    const chains = createChains<K, V>(2 * old.length)
    for (let at = 0; at < old.length; at++) {
      let node = old[at]
      old[at] = undefined // so that the old array does not keep entries alive
      while (node) {
        const { next } = node
        link(chains, node)
        node = next
      }
    }
    this.#chains = chains
  }
}

const createChains = <K, V>(count: number): (Node<K, V> | undefined)[] => new Array(count).fill(undefined)

const link = <K extends string | number, V>(chains: (Node<K, V> | undefined)[], node: Node<K, V>): void => {
  const at = chainOf(node.key, chains.length)
  node.next = chains[at]
  chains[at] = node
}

/** The index of the chain that a key belongs to. */
const chainOf = (key: string | number, count: number): number =>
  (typeof key === 'number' ? key : hashOf(key)) & (count - 1)

/** Each character counts, and each bit of the hash depends on the seed. */
const hashOf = (key: string): number => {
  if (key.length > LONG_KEY) return sha256Of(key)
  let mixed = SEED ^ key.length
  for (let at = 0; at < key.length; at++) {
    mixed = Math.imul(mixed ^ key.charCodeAt(at), 0x9e3779b1)
    mixed ^= mixed >>> 15 // the multiplication carries to higher bits only
  }
  return mixed
}

/** In UTF-16: in UTF-8, all unpaired surrogates are one character. */
const sha256Of = (key: string): number =>
  hash('sha256', Buffer.from(`${SEED} ${key}`, 'utf16le'), 'buffer').readInt32LE(0)
