import type { PlainObject } from '../../../wire/json/json.ts'
import { checkDate, checkLength, isObject, LONGEST, RequestError } from '../input-checks.ts'
import type { NewEntity, NewFact } from '../model.ts'

type Given = Readonly<Record<string, unknown>>

const MOST_STATED = 500

const string: PlainObject = { type: 'string' }
const strings: PlainObject = { type: 'array', items: string }
const date: PlainObject = { type: 'string', description: 'ISO 8601' }

/** The schema of an entity that an agent states. */
export const ENTITY_SCHEMA: PlainObject = {
  type: 'object',
  properties: {
    name: string,
    labels: { ...strings, description: 'What it is: Person, Preference, Procedure, Organization …' },
    aliases: { ...strings, description: 'Other names it goes by' },
    summary: string,
    attributes: { type: 'object', additionalProperties: true },
  },
  required: ['name'],
}

/** The schema of a fact that an agent states. */
export const FACT_SCHEMA: PlainObject = {
  type: 'object',
  properties: {
    source: { ...string, description: 'Whom or what it is about' },
    name: { ...string, description: 'The relation, like WORKS_AT' },
    target: { ...string, description: 'The other end' },
    fact: { ...string, description: 'The fact as a sentence that can stand alone' },
    valid_at: date,
    invalid_at: date,
    supersedes: { ...strings, description: 'uuids of facts that no longer hold because of this one' },
    single_valued: { type: 'boolean', description: 'The source has one such relation at a time: an older one ends' },
    confidence: { type: 'number', minimum: 0, maximum: 1 },
    attributes: { type: 'object', additionalProperties: true },
  },
  required: ['source', 'target', 'fact'],
}

export const readStatedEntities = (given: readonly Given[] = []): readonly NewEntity[] => {
  checkCount('entities', given)
  return given.map((item, at) => readEntity(item, `entities[${at}]`))
}

const readEntity = (item: Given, where: string): NewEntity => ({
  name: textOf(item, 'name', where),
  ...optionally('labels', textsOf(item, 'labels', where)),
  ...optionally('aliases', textsOf(item, 'aliases', where)),
  ...optionally('summary', maybeText(item, 'summary', where, LONGEST.sentence)),
  ...optionally('attributes', membersOf(item, 'attributes', where)),
})

export const readStatedFacts = (given: readonly Given[] = []): readonly NewFact[] => {
  checkCount('facts', given)
  return given.map((item, at) => readFact(item, `facts[${at}]`))
}

const readFact = (item: Given, where: string): NewFact => {
  const [validAt, invalidAt] = [dateOf(item, 'valid_at', where), dateOf(item, 'invalid_at', where)]
  if (validAt !== undefined && invalidAt !== undefined && invalidAt < validAt)
    throw new RequestError(`${where} contradicts itself: invalid_at is before valid_at`)
  return {
    source: { name: textOf(item, 'source', where) },
    target: { name: textOf(item, 'target', where) },
    name: maybeText(item, 'name', where)?.trim() || 'RELATES_TO',
    fact: textOf(item, 'fact', where, LONGEST.sentence),
    origin: 'agent',
    confidence: confidenceOf(item, where),
    ...optionally('validAt', validAt),
    ...optionally('invalidAt', invalidAt),
    ...optionally('supersedes', textsOf(item, 'supersedes', where)),
    ...optionally('attributes', membersOf(item, 'attributes', where)),
    ...(item.single_valued === true && { singleValued: true }),
  }
}

const checkCount = (what: string, given: readonly Given[]): void => {
  if (given.length > MOST_STATED)
    throw new RequestError(
      `${given.length} ${what} are too many for one episode; at most ${MOST_STATED} fit, split them`,
    )
}

const optionally = <K extends string, V>(key: K, value: V | undefined): { readonly [P in K]?: V } =>
  value === undefined ? {} : ({ [key]: value } as { readonly [P in K]?: V })

const textOf = (item: Given, key: string, where: string, most: number = LONGEST.name): string => {
  const value = item[key]
  if (typeof value !== 'string' || value.trim() === '')
    throw new RequestError(`${where}.${key} must be a string that is not blank`)
  checkLength(`${where}.${key}`, value, most, '; a longer text belongs in episode_body')
  return value
}

const maybeText = (item: Given, key: string, where: string, most?: number): string | undefined =>
  item[key] === undefined || item[key] === null ? undefined : textOf(item, key, where, most)

const textsOf = (item: Given, key: string, where: string): readonly string[] | undefined => {
  const value = item[key]
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value) || !value.every(word => typeof word === 'string'))
    throw new RequestError(`${where}.${key} must be a list of strings`)
  for (const word of value) checkLength(`${where}.${key}`, word, LONGEST.name)
  return value
}

const membersOf = (item: Given, key: string, where: string): Given | undefined => {
  const value = item[key]
  if (value === undefined || value === null) return undefined
  if (isObject(value)) return value
  throw new RequestError(`${where}.${key} must be an object`)
}

const dateOf = (item: Given, key: string, where: string): number | undefined => {
  const given = maybeText(item, key, where)
  return given === undefined ? undefined : checkDate(given, `${where}.${key}: `)
}

const confidenceOf = (item: Given, where: string): number => {
  const value = item.confidence ?? 1
  if (typeof value === 'number' && value >= 0 && value <= 1) return value
  throw new RequestError(`${where}.confidence must be a number from 0 to 1`)
}
