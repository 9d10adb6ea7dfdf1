import type { SearchStore, Step } from '../store.ts'

const MOST_NODES = 5_000
const MOST_STEPS = 20_000 // read per hop

/** What lies around some entities. */
export interface Surroundings {
  readonly distances: ReadonlyMap<number, number> // entity → hops from the nearest of those it began with
  readonly steps: readonly Step[] // every one seen, nearest first
}

/** Walks from these entities along facts, either way, as far as `hops` goes. */
export const surroundingsOf = async (
  store: Pick<SearchStore, 'neighbours'>,
  from: readonly number[],
  hops: number,
  most = MOST_STEPS,
): Promise<Surroundings> => {
  const distances = new Map(from.map(id => [id, 0]))
  const steps: Step[] = []
  let edge = [...from]
  for (let hop = 1; hop <= hops && edge.length > 0 && distances.size < MOST_NODES; hop++) {
    const next = await store.neighbours(edge, most)
    edge = []
    for (const step of next) {
      steps.push(step)
      if (distances.has(step.to) || distances.size >= MOST_NODES) continue
      distances.set(step.to, hop)
      edge.push(step.to)
    }
  }
  return { distances, steps }
}
