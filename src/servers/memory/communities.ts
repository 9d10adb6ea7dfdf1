/** Two entities that a fact joins. */
export interface Link {
  readonly from: number
  readonly to: number
}

const MOST_ROUNDS = 30

/**
 * Entities that hang together, by label propagation: each takes the label most of its neighbours have, until nothing
 * changes. The order is fixed and ties go to the greater label, so equal graphs give equal communities.
 */
export const communitiesOf = (links: readonly Link[]): readonly (readonly number[])[] => {
  const neighbours = weigh(links)
  const labels = new Map([...neighbours.keys()].map(id => [id, id]))
  const order = [...neighbours.keys()].toSorted((a, b) => a - b)
  for (let round = 0; round < MOST_ROUNDS; round++) if (!passLabels(order, neighbours, labels)) break
  const members = new Map<number, number[]>()
  for (const id of order) {
    const label = labels.get(id) ?? id
    const known = members.get(label)
    if (known) known.push(id)
    else members.set(label, [id])
  }
  return [...members.values()].filter(ids => ids.length > 1)
}

type Weights = ReadonlyMap<number, ReadonlyMap<number, number>>

const weigh = (links: readonly Link[]): Weights => {
  const weights = new Map<number, Map<number, number>>()
  const join = (a: number, b: number): void => {
    const known = weights.get(a) ?? new Map<number, number>()
    known.set(b, (known.get(b) ?? 0) + 1)
    weights.set(a, known)
  }
  for (const { from, to } of links) {
    if (from === to) continue
    join(from, to)
    join(to, from)
  }
  return weights
}

/** One round; whether any label changed. */
const passLabels = (order: readonly number[], neighbours: Weights, labels: Map<number, number>): boolean => {
  let changed = false
  for (const id of order) {
    const label = strongest(neighbours.get(id) ?? new Map(), labels, labels.get(id) ?? id)
    if (label === labels.get(id)) continue
    labels.set(id, label)
    changed = true
  }
  return changed
}

const strongest = (weights: ReadonlyMap<number, number>, labels: ReadonlyMap<number, number>, own: number): number => {
  const votes = new Map<number, number>()
  for (const [neighbour, weight] of weights) {
    const label = labels.get(neighbour) ?? neighbour
    votes.set(label, (votes.get(label) ?? 0) + weight)
  }
  let best = own
  let most = votes.get(own) ?? 0
  for (const [label, count] of votes) {
    if (count < most || (count === most && (best === own || label <= best))) continue
    best = label
    most = count
  }
  return best
}
