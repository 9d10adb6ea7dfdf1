import type { Entity, Episode, Fact } from '../model.ts'
import { WEIGHTS } from '../search/weights.ts'
import type { MemoryStore } from '../store.ts'
import { NOTE, normaliseName } from '../text/names.ts'
import { queryTerms } from '../text/query.ts'
import type { Findings, FoundEntity } from './findings.ts'

/** What is known already and may be the same as something found, or speak against it. */
export interface Known {
  /** The entity a found one's name already means, by the found one's place. */
  readonly named: ReadonlyMap<number, Entity>
  /** Older entities that a found one of a new name may be. */
  readonly likely: ReadonlyMap<number, readonly Entity[]>
  /** Facts about an end of a found one. */
  readonly facts: ReadonlyMap<number, readonly Fact[]>
}

const MOST_LIKELY = 3
const MOST_FACTS = 5
const LOOKED_AT = 20
const ASKED_ABOUT = 60 // found things in one question

/** All the names a found entity goes by. */
const namesOf = ({ name, aliases }: FoundEntity): string[] => [name, ...aliases].map(normaliseName)

const likelyFor = async (store: MemoryStore, episode: Episode, found: FoundEntity): Promise<Entity[]> => {
  const terms = queryTerms([found.name, ...found.aliases].join(' '))
  if (terms.length === 0) return []
  const query = { terms, groups: [episode.group], limit: LOOKED_AT, weights: WEIGHTS.entities }
  const alike = await store.searchEntities(query)
  // What this very episode brought about is not known from before.
  return alike.filter(({ createdAt, name }) => createdAt < episode.createdAt && name !== NOTE).slice(0, MOST_LIKELY)
}

const factsFor = async (
  store: MemoryStore,
  group: string,
  text: string,
  ends: ReadonlySet<number>,
): Promise<Fact[]> => {
  const terms = queryTerms(text)
  if (terms.length === 0 || ends.size === 0) return []
  const alike = await store.searchFacts({ terms, groups: [group], limit: LOOKED_AT, weights: WEIGHTS.facts })
  const isRival = ({ origin, expiredAt, sourceId, targetId }: Fact): boolean =>
    origin !== 'rule' && expiredAt === undefined && (ends.has(sourceId) || ends.has(targetId))
  return alike.filter(isRival).slice(0, MOST_FACTS)
}

/** Looks up what could be meant by, equal to or at odds with what was found. */
export const lookUp = async (store: MemoryStore, episode: Episode, findings: Findings): Promise<Known> => {
  const { group } = episode
  const all = await store.entitiesNamed([...new Set(findings.entities.flatMap(namesOf))], [group])
  const byNorm = new Map(all.map(entity => [entity.norm, entity]))
  const named = new Map<number, Entity>()
  const likely = new Map<number, readonly Entity[]>()
  for (const [place, found] of findings.entities.entries()) {
    const entity = namesOf(found).flatMap(norm => byNorm.get(norm) ?? [])[0]
    if (entity) named.set(place, entity)
    if ((entity && entity.createdAt < episode.createdAt) || likely.size >= ASKED_ABOUT) continue
    const others = await likelyFor(store, episode, found)
    if (others.length > 0) likely.set(place, others)
  }
  const idsOf = (place: number): number[] =>
    [named.get(place), ...(likely.get(place) ?? [])].flatMap(entity => entity?.id ?? [])
  const facts = new Map<number, readonly Fact[]>()
  for (const [place, { source, target, fact, name }] of findings.facts.slice(0, ASKED_ABOUT).entries()) {
    const ends = new Set([...idsOf(source), ...idsOf(target)])
    const rivals = await factsFor(store, group, `${fact} ${name.replaceAll('_', ' ')}`, ends)
    if (rivals.length > 0) facts.set(place, rivals)
  }
  return { named, likely, facts }
}
