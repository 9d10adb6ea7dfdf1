import { isGroupId } from '../input-checks.ts'
import { sourceOf } from '../remember.ts'
import { timeIn } from './messages.ts'
import type { ImportItem, ImportOrigin } from './store-items.ts'

type Members = Readonly<Record<string, unknown>>

const TIMES = ['valid_at', 'reference_time', 'created_at']

/** Reads an episode of Graphiti. */
export const graphitiItem = (
  record: Members,
  where: string,
  { givenGroup, group: fallback }: ImportOrigin,
): ImportItem => {
  const fault = (why: string): ImportItem => ({ kind: 'fault', where, why })
  const body = textIn(record, 'content') ?? textIn(record, 'episode_body')
  if (body === undefined) return fault('fact' in record ? 'is a fact, not an episode' : 'has no "content"')
  const group = givenGroup ?? textIn(record, 'group_id') ?? fallback
  if (!isGroupId(group)) return fault(`has a group_id that cannot be used: ${JSON.stringify(group.slice(0, 60))}`)
  const time = TIMES.find(key => record[key] !== undefined && record[key] !== null)
  const validAt = time === undefined ? undefined : timeIn(record[time])
  if (time !== undefined && validAt === undefined) return fault(`has no date in "${time}"`)
  const uuid = textIn(record, 'uuid')
  if (uuid !== undefined && !/^[\w-]{1,100}$/.test(uuid)) return fault('has an invalid "uuid"')
  const input = {
    uuid,
    group,
    name: textIn(record, 'name') ?? 'Episode',
    body,
    source: sourceOf(String(record.source).split('.').at(-1) ?? ''), // some exports say `EpisodeType.text`
    sourceDescription: textIn(record, 'source_description') ?? '',
    validAt,
  }
  return { kind: 'episode', where, input }
}

const textIn = (record: Members, key: string): string | undefined => {
  const value = record[key]
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}
