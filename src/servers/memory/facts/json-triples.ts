import type { NewEntity, NewFact } from '../model.ts'
import { normaliseName } from '../text/names.ts'
import type { Reading } from './rules.ts'

const MOST_FACTS = 500
const MOST_DEPTH = 16
const LONGEST_NAME = 80
const CONFIDENCE = 0.7
const NAME_KEYS = ['name', 'title', 'id', 'key'] as const

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isScalar = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value)

/** `employerName` and `employer-name` are the relation EMPLOYER_NAME. */
const relationOf = (key: string): string =>
  key
    .replace(/(?<=\p{Ll})(?=\p{Lu})/gu, '_')
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase() || 'HAS'

const nameOf = (value: unknown): string | undefined => {
  const named = isMembers(value) ? NAME_KEYS.map(key => value[key]).find(isScalar) : isScalar(value) ? value : undefined
  const name = named === undefined ? '' : String(named).trim()
  return name === '' || name.length > LONGEST_NAME || normaliseName(name) === '' ? undefined : name
}

interface Gathered {
  readonly entities: Map<string, NewEntity>
  readonly facts: NewFact[]
}

const note = (gathered: Gathered, name: string): void => {
  const norm = normaliseName(name)
  if (!gathered.entities.has(norm)) gathered.entities.set(norm, { name, labels: ['Entity'] })
}

const state = (gathered: Gathered, source: string, key: string, value: unknown): void => {
  const target = nameOf(value)
  if (target === undefined || normaliseName(target) === normaliseName(source) || gathered.facts.length >= MOST_FACTS)
    return
  for (const name of [source, target]) note(gathered, name)
  const words = relationOf(key).toLowerCase().replaceAll('_', ' ')
  gathered.facts.push({
    source: { name: source },
    target: { name: target },
    name: relationOf(key),
    fact: `${source} ${words}: ${target}`,
    origin: 'rule',
    confidence: CONFIDENCE,
  })
}

/** An object that has a name is about that; one without is about what holds it. */
const walk = (gathered: Gathered, value: unknown, owner: string | undefined, depth: number): void => {
  if (depth > MOST_DEPTH || gathered.facts.length >= MOST_FACTS) return
  if (Array.isArray(value)) for (const item of value) walk(gathered, item, owner, depth + 1)
  if (!isMembers(value)) return
  const self = nameOf(value) ?? owner
  for (const [key, member] of Object.entries(value)) {
    for (const item of Array.isArray(member) ? member : [member])
      if (self !== undefined) state(gathered, self, key, item)
    walk(gathered, member, self, depth + 1)
  }
}

/** Reads the relations that a JSON text spells out: the name of an object, the key, and the name or value it holds. */
export const readJson = (body: string): Reading => {
  const gathered: Gathered = { entities: new Map(), facts: [] }
  try {
    walk(gathered, JSON.parse(body), undefined, 0)
  } catch {
    return { entities: [], facts: [] }
  }
  return { entities: [...gathered.entities.values()], facts: gathered.facts }
}
