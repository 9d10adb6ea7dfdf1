import type { Source } from '../model.ts'
import type { Item } from './item.ts'
import { timeIn } from './message.ts'

type Members = Readonly<Record<string, unknown>>

const SOURCES: readonly string[] = ['text', 'message', 'json', 'fact_triple'] satisfies readonly Source[]
const GROUP_ID = /^[A-Za-z0-9_-]{1,255}$/
const TIMES = ['valid_at', 'reference_time', 'created_at']

interface Groups {
  readonly given: string | undefined // instead of what the record says
  readonly absent: string // where it says nothing
}

/** An episode as Graphiti gives it. */
export const graphitiItem = (record: Members, where: string, { given, absent }: Groups): Item => {
  const fault = (why: string): Item => ({ kind: 'fault', where, why })
  const body = textIn(record, 'content') ?? textIn(record, 'episode_body')
  if (body === undefined) return fault('fact' in record ? 'is a fact, not an episode' : 'has no "content"')
  const group = given ?? textIn(record, 'group_id') ?? absent
  if (!GROUP_ID.test(group)) return fault(`has a group_id that cannot be used: ${JSON.stringify(group.slice(0, 60))}`)
  const time = TIMES.find(key => record[key] !== undefined && record[key] !== null)
  const validAt = time === undefined ? undefined : timeIn(record[time])
  if (time !== undefined && validAt === undefined) return fault(`has no date in "${time}"`)
  const uuid = textIn(record, 'uuid')
  if (uuid !== undefined && !/^[\w-]{1,100}$/.test(uuid)) return fault('has a "uuid" that is none')
  const told = {
    uuid,
    group,
    name: textIn(record, 'name') ?? 'Episode',
    body,
    source: sourceIn(record.source),
    sourceDescription: textIn(record, 'source_description') ?? '',
    validAt,
  }
  return { kind: 'episode', where, told }
}

const textIn = (record: Members, key: string): string | undefined => {
  const value = record[key]
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** Some write `EpisodeType.text`. */
const sourceIn = (value: unknown): Source => {
  const word = String(value).toLowerCase().split('.').at(-1) ?? ''
  return SOURCES.includes(word) ? (word as Source) : 'text'
}
