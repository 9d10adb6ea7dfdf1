import { queryTerms } from '../../../text/query.ts'
import { isObject } from '../input-checks.ts'
import type { Entity, Episode, Fact, Instant } from '../model.ts'
import { WEIGHTS } from '../search/weights.ts'
import type { MemoryStore } from '../store.ts'
import { NOTE, normaliseName } from '../text/names.ts'
import type { ChatQuestion } from './chat.ts'
import { exactly } from './extraction-prompt.ts'
import { type Findings, type FoundEntity, UnusableAnswer } from './findings.ts'

/** Stored entities and facts that may equal or contradict a finding, by the index of the finding. */
export interface Candidates {
  /** The entity that already has the found name. */
  readonly named: ReadonlyMap<number, Entity>
  /** Older entities that may be the found one under another name. */
  readonly similar: ReadonlyMap<number, readonly Entity[]>
  /** Facts about an entity of the found fact. */
  readonly facts: ReadonlyMap<number, readonly Fact[]>
}

const MOST_SIMILAR = 3
const MOST_FACTS = 5
const SEARCH_LIMIT = 20
const MOST_COMPARED = 60 // findings in one question

const namesOf = ({ name, aliases }: FoundEntity): string[] => [name, ...aliases].map(normaliseName)

const similarEntities = async (store: MemoryStore, episode: Episode, found: FoundEntity): Promise<Entity[]> => {
  const terms = queryTerms([found.name, ...found.aliases].join(' '))
  if (terms.length === 0) return []
  const query = { terms, groups: [episode.group], limit: SEARCH_LIMIT, weights: WEIGHTS.entities }
  const similar = await store.searchEntities(query)
  // Entities that came with this episode were found by rules in the same text.
  return similar.filter(({ createdAt, name }) => createdAt < episode.createdAt && name !== NOTE).slice(0, MOST_SIMILAR)
}

const similarFacts = async (
  store: MemoryStore,
  group: string,
  text: string,
  ends: ReadonlySet<number>,
): Promise<Fact[]> => {
  const terms = queryTerms(text)
  if (terms.length === 0 || ends.size === 0) return []
  const found = await store.searchFacts({ terms, groups: [group], limit: SEARCH_LIMIT, weights: WEIGHTS.facts })
  const isRival = ({ origin, expiredAt, sourceId, targetId }: Fact): boolean =>
    origin !== 'rule' && expiredAt === undefined && (ends.has(sourceId) || ends.has(targetId))
  return found.filter(isRival).slice(0, MOST_FACTS)
}

/** Looks up stored entities and facts that may equal or contradict the findings. */
export const findCandidates = async (store: MemoryStore, episode: Episode, findings: Findings): Promise<Candidates> => {
  const { group } = episode
  const all = await store.entitiesNamed([...new Set(findings.entities.flatMap(namesOf))], [group])
  const byNorm = new Map(all.map(entity => [entity.norm, entity]))
  const named = new Map<number, Entity>()
  const similar = new Map<number, readonly Entity[]>()
  for (const [place, found] of findings.entities.entries()) {
    const entity = namesOf(found).flatMap(norm => byNorm.get(norm) ?? [])[0]
    if (entity) named.set(place, entity)
    if ((entity && entity.createdAt < episode.createdAt) || similar.size >= MOST_COMPARED) continue
    const others = await similarEntities(store, episode, found)
    if (others.length > 0) similar.set(place, others)
  }
  const idsOf = (place: number): number[] =>
    [named.get(place), ...(similar.get(place) ?? [])].flatMap(entity => entity?.id ?? [])
  const facts = new Map<number, readonly Fact[]>()
  for (const [place, { source, target, fact, name }] of findings.facts.slice(0, MOST_COMPARED).entries()) {
    const ends = new Set([...idsOf(source), ...idsOf(target)])
    const rivals = await similarFacts(store, group, `${fact} ${name.replaceAll('_', ' ')}`, ends)
    if (rivals.length > 0) facts.set(place, rivals)
  }
  return { named, similar, facts }
}

/** Which findings equal or contradict stored entities and facts, by the index of the finding. */
export interface Comparison {
  readonly sameEntity: ReadonlyMap<number, Entity>
  readonly sameFact: ReadonlyMap<number, Fact>
  readonly contradicted: ReadonlyMap<number, readonly Fact[]>
}

export const NO_MATCHES: Comparison = { sameEntity: new Map(), sameFact: new Map(), contradicted: new Map() }

const number = { type: 'integer' }
const maybe = { type: ['integer', 'null'] }

const SCHEMA = exactly({
  entities: { type: 'array', items: exactly({ entity: number, same_as: maybe }) },
  facts: {
    type: 'array',
    items: exactly({ fact: number, same_as: maybe, contradicts: { type: 'array', items: number } }),
  },
})

const SYSTEM = `You keep the memory of an agent. New entities and facts were found; beside each stand known ones, with numbers, that may have to do with it. Answer as JSON with two lists.

"entities": for each new entity {"entity": its number, "same_as": the number of the known entity that is the very same person, place or thing under another name, or null}. Alike is not the same.
"facts": for each new fact {"fact": its number, "same_as": the number of the known fact that says the same, or null, "contradicts": numbers of known facts that cannot be true at the same time as the new one}. What is more exact or differs only in its date is not a contradiction; a new value for what has one value at a time (where a person lives, what something costs) is one.

Use only the numbers that stand beside the one you judge. When in doubt, null and an empty list.`

const dayOf = (at: Instant | undefined): string => (at === undefined ? '?' : new Date(at).toISOString().slice(0, 10))

/** Asks about all candidates in one question; undefined if there are none. */
export const comparisonQuestion = (
  { entities, facts }: Findings,
  candidates: Candidates,
  model: string,
): ChatQuestion | undefined => {
  if (candidates.similar.size === 0 && candidates.facts.size === 0) return undefined
  const entityLines = [...candidates.similar].flatMap(([place, others]) => [
    `entity ${place}: ${entities[place]?.name} ${entities[place]?.summary}`.trim(),
    ...others.map((other, index) => `  known ${index}: ${other.name} ${other.summary.slice(0, 200)}`.trimEnd()),
  ])
  const factLines = [...candidates.facts].flatMap(([place, others]) => [
    `fact ${place}: ${facts[place]?.fact} (since ${dayOf(facts[place]?.validAt)})`,
    ...others.map((other, index) => `  known ${index}: ${other.fact} (since ${dayOf(other.validAt)})`),
  ])
  const user = ['## New entities', ...entityLines, '', '## New facts', ...factLines]
  return { model, system: SYSTEM, user: user.join('\n'), name: 'judgement', schema: SCHEMA }
}

const listIn = (answer: unknown, key: string): readonly Readonly<Record<string, unknown>>[] => {
  const list = isObject(answer) ? answer[key] : undefined
  if (!Array.isArray(list)) throw new UnusableAnswer(`The answer of the model has no list of ${key}.`)
  return list.filter(isObject)
}

const candidateAt = <Item>(items: readonly Item[] | undefined, index: unknown): Item | undefined =>
  typeof index === 'number' ? items?.[index] : undefined

/** Reads an answer. Ignores unknown numbers, and equality of facts about different entities. */
export const readComparison = (answer: unknown, findings: Findings, candidates: Candidates): Comparison => {
  const sameEntity = new Map<number, Entity>()
  for (const { entity: place, same_as: index } of listIn(answer, 'entities')) {
    const same = candidateAt(candidates.similar.get(place as number), index)
    if (same) sameEntity.set(place as number, same)
  }
  const idOf = (place: number): number | undefined => (sameEntity.get(place) ?? candidates.named.get(place))?.id
  const sameFact = new Map<number, Fact>()
  const contradicted = new Map<number, readonly Fact[]>()
  for (const { fact: place, same_as: index, contradicts } of listIn(answer, 'facts')) {
    const found = findings.facts[place as number]
    const others = candidates.facts.get(place as number)
    if (!found || !others) continue
    const ends = [idOf(found.source), idOf(found.target)]
    const same = candidateAt(others, index)
    const isSame = same !== undefined && ends.includes(same.sourceId) && ends.includes(same.targetId)
    if (isSame) sameFact.set(place as number, same)
    const against = (Array.isArray(contradicts) ? contradicts : [])
      .flatMap(at => candidateAt(others, at) ?? [])
      .filter(other => other !== same && (ends.includes(other.sourceId) || ends.includes(other.targetId)))
    if (!isSame && against.length > 0) contradicted.set(place as number, [...new Set(against)])
  }
  return { sameEntity, sameFact, contradicted }
}
