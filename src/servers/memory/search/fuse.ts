/** A ranked list and how much it counts. */
export interface RankedList<Key> {
  readonly keys: readonly Key[] // best first, each once
  readonly weight: number
}

/** Weighted reciprocal rank: every list gives its weight ÷ (constant + place) to what it holds. Best first. */
export const fuse = <Key>(lists: readonly RankedList<Key>[], constant: number): Map<Key, number> => {
  const scores = new Map<Key, number>()
  for (const { keys, weight } of lists) {
    keys.forEach((key, place) => {
      scores.set(key, (scores.get(key) ?? 0) + weight / (constant + place + 1))
    })
  }
  return new Map([...scores].toSorted(([, a], [, b]) => b - a))
}

/** One of every source in order, then the second of every source, and so on, until there are enough. */
export const spread = <Item>(items: readonly Item[], sourceOf: (item: Item) => unknown, limit: number): Item[] => {
  const seen = new Map<unknown, number>()
  const rounds: Item[][] = [[]]
  for (const item of items) {
    const source = sourceOf(item)
    const round = source === undefined ? 0 : (seen.get(source) ?? 0)
    if (source !== undefined) seen.set(source, round + 1)
    if (round === rounds.length) rounds.push([])
    rounds[round]?.push(item)
  }
  return rounds.flat().slice(0, limit)
}
