import type { Granularity, Instant } from '../model.ts'
import { normaliseName } from '../text/names.ts'
import { readDate } from '../tools/dates.ts'
import type { IsNamed } from './grounds.ts'

/** An entity a model found in an episode. */
export interface FoundEntity {
  readonly name: string
  readonly kind: string | undefined
  readonly aliases: readonly string[]
  readonly summary: string
}

/** A fact a model found; its ends are places in the list of entities. */
export interface FoundFact {
  readonly source: number
  readonly target: number
  readonly name: string
  readonly fact: string
  readonly validAt: Instant | undefined
  readonly granularity: Granularity | undefined
  readonly invalidAt: Instant | undefined
  readonly passage: number | undefined
}

/** What is left of an answer when everything that cannot be true is taken out. */
export interface Findings {
  readonly entities: readonly FoundEntity[]
  readonly facts: readonly FoundFact[]
  readonly dropped: number
}

/** What an answer is held against. */
export interface Bounds {
  readonly isNamed: IsNamed
  readonly kinds: ReadonlyMap<string, string>
  readonly excluded: readonly string[]
  readonly passages: number
}

/** An answer of which nothing can be used. */
export class Unusable extends Error {
  override readonly name = 'Unusable'
}

const MOST_ENTITIES = 100
const MOST_FACTS = 200
const LONGEST_NAME = 200
const LONGEST_FACT = 1_000
const LONGEST_RELATION = 64

type Members = Readonly<Record<string, unknown>>

const membersOf = (value: unknown): Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : {}

const textIn = (members: Members, key: string, longest: number): string | undefined => {
  const value = members[key]
  if (typeof value !== 'string' || value.includes('\0')) return undefined
  const text = value.trim()
  return text === '' || text.length > longest ? undefined : Buffer.from(text, 'utf8').toString('utf8')
}

const COARSE = /^(\d{4})(?:-(\d{2}))?$/

interface When {
  readonly at: Instant
  readonly granularity: Granularity
}

/** A date as models write it; `false` for one that is none. */
export const readWhen = (given: unknown): When | undefined | false => {
  if (given === undefined || given === null || given === '') return undefined
  if (typeof given !== 'string') return false
  const coarse = COARSE.exec(given.trim())
  const at = readDate(coarse ? `${coarse[1]}-${coarse[2] ?? '01'}-01` : given)
  if (at === undefined) return false
  if (coarse) return { at, granularity: coarse[2] === undefined ? 'year' : 'month' }
  return { at, granularity: given.trim().length <= 10 ? 'day' : 'second' }
}

const kindOf = (item: unknown): string => (textIn(membersOf(item), 'kind', LONGEST_NAME) ?? '').toLowerCase()

const readEntity = (item: unknown, { isNamed, kinds }: Bounds): FoundEntity | undefined => {
  const members = membersOf(item)
  const name = textIn(members, 'name', LONGEST_NAME)
  if (name === undefined || normaliseName(name) === '' || !isNamed(name)) return undefined
  const others = Array.isArray(members.aliases) ? members.aliases : []
  const aliases = others.filter((alias): alias is string => typeof alias === 'string' && alias.length <= LONGEST_NAME)
  return {
    name,
    kind: kinds.get(kindOf(item)),
    aliases: aliases.filter(alias => normaliseName(alias) !== '' && isNamed(alias)),
    summary: textIn(members, 'summary', LONGEST_FACT) ?? '',
  }
}

/** Every name once; a name that is somebody's own is nobody else's alias. */
const distinct = (entities: readonly FoundEntity[]): FoundEntity[] => {
  const byName = new Map<string, FoundEntity>()
  for (const entity of entities) {
    const norm = normaliseName(entity.name)
    if (!byName.has(norm)) byName.set(norm, entity)
  }
  return [...byName.values()].slice(0, MOST_ENTITIES).map(entity => ({
    ...entity,
    aliases: entity.aliases.filter(alias => !byName.has(normaliseName(alias))),
  }))
}

const relationOf = (given: string | undefined): string => {
  const words = (given ?? '').match(/[\p{L}\p{N}]+/gu) ?? []
  return words.join('_').toUpperCase().slice(0, LONGEST_RELATION) || 'RELATES_TO'
}

const readFact = (item: unknown, places: ReadonlyMap<string, number>, passages: number): FoundFact | undefined => {
  const members = membersOf(item)
  const end = (key: string) => places.get(normaliseName(textIn(members, key, LONGEST_NAME) ?? ''))
  const [source, target, fact] = [end('source'), end('target'), textIn(members, 'fact', LONGEST_FACT)]
  const [from, until] = [readWhen(members.valid_at), readWhen(members.invalid_at)]
  if (source === undefined || target === undefined || source === target || fact === undefined) return undefined
  if (from === false || until === false || (from && until && until.at < from.at)) return undefined
  const passage = members.passage
  const isShown = Number.isInteger(passage) && (passage as number) >= 0 && (passage as number) < passages
  return {
    source,
    target,
    fact,
    name: relationOf(textIn(members, 'relation', LONGEST_NAME)),
    validAt: from?.at,
    granularity: from?.granularity,
    invalidAt: until?.at,
    passage: isShown ? (passage as number) : undefined,
  }
}

const isPresent = <Item>(item: Item | undefined): item is Item => item !== undefined

/** Reads an answer and keeps of it what can be true: names that were shown, facts between them, dates that exist. */
export const readFindings = (answer: unknown, bounds: Bounds): Findings => {
  const { entities, facts } = membersOf(answer)
  if (!Array.isArray(entities) || !Array.isArray(facts))
    throw new Unusable('The answer of the model has no lists of entities and facts.')
  const wanted = entities.filter(item => !bounds.excluded.includes(kindOf(item)))
  const kept = distinct(wanted.map(item => readEntity(item, bounds)).filter(isPresent))
  if (wanted.length > 0 && kept.length === 0)
    throw new Unusable(`The model named ${wanted.length} entities, and none of them stands in the episode.`)
  const places = new Map(
    kept.flatMap(({ name, aliases }, place) => [...aliases, name].map(norm => [normaliseName(norm), place] as const)),
  )
  const told = facts.map(item => readFact(item, places, bounds.passages)).filter(isPresent)
  if (facts.length > 0 && entities.length === 0)
    throw new Unusable(`The model stated ${facts.length} facts about nothing that stands in the episode.`)
  const dropped = entities.length - kept.length + facts.length - told.length
  return { entities: kept, facts: told.slice(0, MOST_FACTS), dropped }
}
