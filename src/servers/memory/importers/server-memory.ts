import type { NewEntity } from '../model.ts'
import { type Item, type Origin, uuidFor } from './item.ts'

type Members = Readonly<Record<string, unknown>>

/** An entity or a relation of the reference memory server's file. */
export const serverMemoryItem = (record: Members, where: string, origin: Origin): Item => {
  if (record.type === 'relation' || 'relationType' in record) return relation(record, where, origin)
  if (record.type === 'entity' || 'observations' in record || 'entityType' in record)
    return entity(record, where, origin)
  return { kind: 'fault', where, why: 'is neither an entity nor a relation' }
}

const textIn = (record: Members, key: string): string | undefined => {
  const value = record[key]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

const relation = (record: Members, where: string, { group }: Origin): Item => {
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

const FITS_AS_SPEAKER = /^[\p{L}\p{N}_@.'’-]+(?: [\p{L}\p{N}_@.'’-]+){0,3}$/u

/** What was observed of an entity is an episode about it; without any it is only named. */
const entity = (record: Members, where: string, { group, key, modified }: Origin): Item => {
  const name = textIn(record, 'name')
  if (!name) return { kind: 'fault', where, why: 'is an entity without a "name"' }
  const { observations = [] } = record
  if (!Array.isArray(observations) || observations.some(one => typeof one !== 'string'))
    return { kind: 'fault', where, why: 'has "observations" that are not a list of texts' }
  const type = textIn(record, 'entityType')
  const spoken = name.replaceAll('_', ' ') // there names are written John_Smith
  const aliases = spoken === name ? [] : [spoken]
  const itself: NewEntity = { name, aliases, ...(type && { labels: [type] }) }
  const seen = (observations as readonly string[]).map(one => one.trim()).filter(one => one !== '')
  if (seen.length === 0) return { kind: 'facts', where, group, entities: [itself], facts: [] }
  const isSpeaker = FITS_AS_SPEAKER.test(name)
  return {
    kind: 'episode',
    where,
    isUndated: true,
    told: {
      uuid: uuidFor('server-memory', group, key, name),
      group,
      name,
      // As if it spoke of itself: that ties every line to the entity.
      body: seen.map(one => `${name}: ${one.replaceAll(/\s*\n\s*/g, ' ')}`).join(isSpeaker ? '\n' : '\n\n'),
      source: isSpeaker ? 'message' : 'text',
      sourceDescription: type ? `observations of a ${type}` : 'observations',
      validAt: modified,
      chain: `entity:${uuidFor(key, name)}`,
      entities: [itself],
    },
  }
}
