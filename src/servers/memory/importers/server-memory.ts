import { uuidFor } from '../ids.ts'
import type { NewEntity } from '../model.ts'
import type { ImportItem, ImportOrigin } from './store-items.ts'

type Members = Readonly<Record<string, unknown>>

/** Reads an entity or a relation from a file of the reference memory server. */
export const serverMemoryItem = (record: Members, where: string, origin: ImportOrigin): ImportItem => {
  if (record.type === 'relation' || 'relationType' in record) return relation(record, where, origin)
  if (record.type === 'entity' || 'observations' in record || 'entityType' in record)
    return entity(record, where, origin)
  return { kind: 'fault', where, why: 'is neither an entity nor a relation' }
}

const textIn = (record: Members, key: string): string | undefined => {
  const value = record[key]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

const relation = (record: Members, where: string, { group }: ImportOrigin): ImportItem => {
  const [from, to, type] = [textIn(record, 'from'), textIn(record, 'to'), textIn(record, 'relationType')]
  if (!from || !to || !type)
    return { kind: 'fault', where, why: 'is a relation without "from", "to" or "relationType"' }
  const words = type.replaceAll(/[_-]+/g, ' ')
  const fact = {
    source: { name: from },
    target: { name: to },
    name: type.replaceAll(/[^\p{L}\p{N}]+/gu, '_').toUpperCase(),
    fact: `${from} ${words} ${to}`,
    origin: 'triplet',
    confidence: 1,
  } as const
  return { kind: 'facts', where, group, entities: [], facts: [fact] }
}

const SPEAKER_NAME = /^[\p{L}\p{N}_@.'’-]+(?: [\p{L}\p{N}_@.'’-]+){0,3}$/u

/** The observations of an entity become an episode about it; without any, only the entity is stored. */
const entity = (record: Members, where: string, { group, key, modified }: ImportOrigin): ImportItem => {
  const name = textIn(record, 'name')
  if (!name) return { kind: 'fault', where, why: 'is an entity without a "name"' }
  const { observations = [] } = record
  if (!Array.isArray(observations) || observations.some(one => typeof one !== 'string'))
    return { kind: 'fault', where, why: 'has "observations" that are not a list of texts' }
  const type = textIn(record, 'entityType')
  const spaced = name.replaceAll('_', ' ') // the server writes names like John_Smith
  const aliases = spaced === name ? [] : [spaced]
  const self: NewEntity = { name, aliases, ...(type && { labels: [type] }) }
  const lines = (observations as readonly string[]).map(one => one.trim()).filter(one => one !== '')
  if (lines.length === 0) return { kind: 'facts', where, group, entities: [self], facts: [] }
  const isSpeaker = SPEAKER_NAME.test(name)
  return {
    kind: 'episode',
    where,
    isUndated: true,
    input: {
      uuid: uuidFor('server-memory', group, key, name),
      group,
      name,
      // Written as messages of the entity, so that every line becomes a fact about it.
      body: lines.map(one => `${name}: ${one.replaceAll(/\s*\n\s*/g, ' ')}`).join(isSpeaker ? '\n' : '\n\n'),
      source: isSpeaker ? 'message' : 'text',
      sourceDescription: type ? `observations of a ${type}` : 'observations',
      validAt: modified,
      chain: `entity:${uuidFor(key, name)}`,
      entities: [self],
    },
  }
}
