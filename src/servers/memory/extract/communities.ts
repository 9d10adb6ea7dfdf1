import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Community, Entity, Fact } from '../model.ts'
import type { MemoryStore } from '../store.ts'
import type { JobHandler } from '../worker.ts'
import { MOST_SENTENCES, shorten } from './summaries.ts'

/** Two entities that a fact connects. */
export interface Link {
  readonly from: number
  readonly to: number
}

const MOST_ROUNDS = 30

/**
 * Finds connected entities by label propagation: each takes the label that most of its neighbours have, until nothing
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

/** One round of label propagation; returns whether a label changed. */
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

const MOST_FACTS = 40 // of a community
const MOST_NAMED = 3 // members in the name of a community
const MOST_DESCRIBED = 500 // members whose facts are read

/** Finds and describes the communities of the given groups; they replace the earlier ones. */
export const rebuildCommunities = async (
  store: MemoryStore,
  groups: readonly string[],
): Promise<readonly Community[]> => {
  const links = await store.links(groups)
  const found = []
  for (const group of groups) {
    for (const ids of communitiesOf(links.filter(link => link.group === group))) {
      found.push(await describe(store, group, ids))
      await yieldToEventLoop()
    }
  }
  return store.replaceCommunities(groups, found)
}

const describe = async (store: MemoryStore, group: string, ids: readonly number[]) => {
  const members = await store.entitiesById(ids)
  const facts = await store.factsOfEntities(ids.slice(0, MOST_DESCRIBED), MOST_FACTS)
  const own = new Set(ids)
  const within = facts.filter(({ sourceId, targetId }) => own.has(sourceId) && own.has(targetId))
  const names = members.map(({ name }) => name)
  return {
    group,
    name: names.slice(0, MOST_NAMED).join(', '),
    summary: summaryOf(members, within),
    members: members.map(({ uuid }) => uuid),
  }
}

/** The names of the members and the latest facts between them. */
const summaryOf = (members: readonly Entity[], facts: readonly Fact[]): string => {
  const names = members.map(({ name }) => name).join(', ')
  const latest = facts.toSorted((a, b) => (b.validAt ?? b.createdAt) - (a.validAt ?? a.createdAt))
  return shorten([names, ...new Set(latest.map(({ fact }) => fact))].slice(0, MOST_SENTENCES + 1).join('. '))
}

/** Handles jobs of the kind `communities`. */
export const communitiesJob: JobHandler = async (store, { group }) => void (await rebuildCommunities(store, [group]))
