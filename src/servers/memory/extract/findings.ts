import { foldWord, isStopWord, stemOf, wordsOf } from '../../../text/words.ts'
import { membersOf, readDate } from '../input-checks.ts'
import type { Granularity, Instant } from '../model.ts'
import { normaliseName } from '../text/names.ts'
import type { ExtractionMaterial } from './extraction-prompt.ts'

/** An entity a model found in an episode. */
export interface FoundEntity {
  readonly name: string
  readonly kind: string | undefined
  readonly aliases: readonly string[]
  readonly summary: string
}

/** A fact a model found; `source` and `target` are indexes of entities. */
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

/** The valid part of an answer. */
export interface Findings {
  readonly entities: readonly FoundEntity[]
  readonly facts: readonly FoundFact[]
  readonly dropped: number
}

/** What an answer is checked against. */
export interface FindingChecks {
  readonly isNamed: IsNamed
  readonly kinds: ReadonlyMap<string, string>
  readonly excluded: readonly string[]
  readonly passages: number
}

/** No part of the answer is valid. */
export class UnusableAnswer extends Error {
  override readonly name = 'UnusableAnswer'
}

const MOST_ENTITIES = 100
const MOST_FACTS = 200
const LONGEST_NAME = 200
const LONGEST_FACT = 1_000
const LONGEST_RELATION = 64

type Members = Readonly<Record<string, unknown>>

const textIn = (members: Members, key: string, longest: number): string | undefined => {
  const value = members[key]
  if (typeof value !== 'string' || value.includes('\0')) return undefined
  const text = value.trim()
  return text === '' || text.length > longest ? undefined : Buffer.from(text, 'utf8').toString('utf8')
}

const COARSE = /^(\d{4})(?:-(\d{2}))?$/

interface FoundDate {
  readonly at: Instant
  readonly granularity: Granularity
}

/** A date as models write it; `false` if it is invalid. */
export const readFoundDate = (given: unknown): FoundDate | undefined | false => {
  if (given === undefined || given === null || given === '') return undefined
  if (typeof given !== 'string') return false
  const coarse = COARSE.exec(given.trim())
  const at = readDate(coarse ? `${coarse[1]}-${coarse[2] ?? '01'}-01` : given)
  if (at === undefined) return false
  if (coarse) return { at, granularity: coarse[2] === undefined ? 'year' : 'month' }
  return { at, granularity: given.trim().length <= 10 ? 'day' : 'second' }
}

const kindOf = (item: unknown): string => (textIn(membersOf(item), 'kind', LONGEST_NAME) ?? '').toLowerCase()

const readEntity = (item: unknown, { isNamed, kinds }: FindingChecks): FoundEntity | undefined => {
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

/** Each name once; the name of one entity is not an alias of another. */
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
  const [from, until] = [readFoundDate(members.valid_at), readFoundDate(members.invalid_at)]
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

/** Whether a name occurs in what the model was shown. */
type IsNamed = (name: string) => boolean

const FIRST_PERSON = /\b(?:i|me|my|mine|myself|we|us|our|ours)\b/iu
const SPEAKER = 'user' // the name of an unnamed speaker, as the prompt says
const isAscii = (word: string): boolean => /^[\t-~]*$/.test(word)

/** Every word of a name must occur in the material, in any inflection; in scripts without spaces, as a substring. */
export const namesIn = ({ episode, passages, earlier }: ExtractionMaterial): IsNamed => {
  const text = [episode.name, episode.sourceDescription, ...passages, ...earlier].join('\n')
  const stems = new Set(wordsOf(text).map(stemOf))
  const folded = foldWord(text)
  const saysI = FIRST_PERSON.test(text)
  const occurs = (word: string): boolean => stems.has(stemOf(word)) || (!isAscii(word) && folded.includes(word))
  return name => {
    const words = wordsOf(name)
    const specific = words.filter(word => !isStopWord(word))
    if (saysI && normaliseName(name) === SPEAKER) return true
    return specific.length > 0 ? specific.every(occurs) : words.length > 0 && folded.includes(foldWord(name.trim()))
  }
}

/** Keeps the valid part of an answer: names that were shown to the model, facts between them, existing dates. */
export const readFindings = (answer: unknown, checks: FindingChecks): Findings => {
  const { entities, facts } = membersOf(answer)
  if (!Array.isArray(entities) || !Array.isArray(facts))
    throw new UnusableAnswer('The answer of the model has no lists of entities and facts.')
  const wanted = entities.filter(item => !checks.excluded.includes(kindOf(item)))
  const kept = distinct(wanted.map(item => readEntity(item, checks)).filter(isPresent))
  if (wanted.length > 0 && kept.length === 0)
    throw new UnusableAnswer(`The model named ${wanted.length} entities, and none of them occurs in the episode.`)
  const places = new Map(
    kept.flatMap(({ name, aliases }, place) => [...aliases, name].map(norm => [normaliseName(norm), place] as const)),
  )
  const stated = facts.map(item => readFact(item, places, checks.passages)).filter(isPresent)
  if (facts.length > 0 && entities.length === 0)
    throw new UnusableAnswer(`The model stated ${facts.length} facts about no entity of the episode.`)
  const dropped = entities.length - kept.length + facts.length - stated.length
  return { entities: kept, facts: stated.slice(0, MOST_FACTS), dropped }
}
