import { isGroupId } from '../input-checks.ts'
import type { Instant } from '../model.ts'
import { type Imported, StoreError } from '../store.ts'
import { EXPORT_HEADER, LINE_TYPES, type LineType } from './export.ts'

/** One line of an import; its members are unchecked. */
export interface ImportLine {
  readonly number: number
  readonly type: string
  readonly members: Readonly<Record<string, unknown>>
}

const reject = (line: number, why: string): never => {
  throw new StoreError(
    'invalid',
    `Line ${line} of the import ${why}. Some of the lines before it are stored. Correct it and import everything again; no line is stored twice.`,
  )
}

/** Reads one line; undefined if it is empty. */
const readLine = (text: string, number: number): ImportLine | undefined => {
  if (text.trim() === '') return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return reject(number, 'is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return reject(number, 'is not an object')
  const members = value as Readonly<Record<string, unknown>>
  if (typeof members.group === 'string' && !isGroupId(members.group))
    return reject(
      number,
      `names a group ${JSON.stringify(members.group.slice(0, 80))}; only letters, digits, - and _ are allowed`,
    )
  return { number, type: String(members.type), members }
}

/** Rejects a file that is no export of a memory, or one of a later version. */
const checkHeader = ({ number, type, members }: ImportLine): void => {
  if (type !== EXPORT_HEADER.type)
    reject(number, `should say {"type":"${EXPORT_HEADER.type}", …}: this is not an export of a memory`)
  if (typeof members.version !== 'number' || members.version > EXPORT_HEADER.version)
    reject(
      number,
      `has version ${String(members.version)}, but ${EXPORT_HEADER.version} is the latest that is supported here`,
    )
}

/** The type of a line; an unknown one is rejected. */
export const typeOf = ({ number, type }: ImportLine): LineType =>
  LINE_TYPES.find(known => known === type) ?? rejectType(number, type)

const rejectType = (line: number, type: string): never => {
  throw new StoreError('invalid', `Line ${line} of the import is of an unknown type "${type}".`)
}

/** A member that must be text. */
export const requireText = ({ number, members }: ImportLine, key: string): string => {
  const value = members[key]
  return typeof value === 'string' ? value : reject(number, `has no text "${key}"`)
}

/** A member that is text or null. */
export const optionalTextIn = ({ members }: ImportLine, key: string): string | null => {
  const value = members[key]
  return typeof value === 'string' ? value : null
}

/** A member that is a number, or the given one. */
export const numberIn = ({ members }: ImportLine, key: string, absent: number): number => {
  const value = members[key]
  return typeof value === 'number' && Number.isFinite(value) ? value : absent
}

/** A member that is a date or null. */
export const optionalDateIn = (line: ImportLine, key: string): Instant | null => {
  const value = line.members[key]
  if (value === null || value === undefined) return null
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? reject(line.number, `has no date in "${key}"`) : at
}

/** A member that must be a date. */
export const dateIn = (line: ImportLine, key: string): Instant =>
  optionalDateIn(line, key) ?? reject(line.number, `has no date in "${key}"`)

/** A member that is a list, or an empty one. */
export const listIn = ({ number, members }: ImportLine, key: string): readonly unknown[] => {
  const value = members[key] ?? []
  return Array.isArray(value) ? value : reject(number, `has no list "${key}"`)
}

/** The texts of a list. */
export const textsIn = (line: ImportLine, key: string): readonly string[] =>
  listIn(line, key).filter(item => typeof item === 'string')

/** A member as JSON text for a column. */
export const jsonMember = ({ members }: ImportLine, key: string): string => JSON.stringify(members[key] ?? {})

const BATCH = 50 // lines of one transaction

/** The lines of an import in batches, after its header. */
export const readBatches = async function* (
  lines: AsyncIterable<string> | Iterable<string>,
): AsyncGenerator<readonly ImportLine[]> {
  let batch: ImportLine[] = []
  let number = 0
  let hasHeader = false
  for await (const text of lines) {
    const line = readLine(text, ++number)
    if (!line) continue
    if (hasHeader) batch.push(line)
    else checkHeader(line)
    hasHeader = true
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  if (!hasHeader) throw new StoreError('invalid', 'The import is empty: it has not even a header.')
  if (batch.length > 0) yield batch
}

const COUNTED: Readonly<Record<LineType, keyof Imported | undefined>> = {
  saga: 'sagas',
  entity: 'entities',
  episode: 'episodes',
  fact: 'facts',
  community: 'communities',
  job: undefined,
}

/** Counts imported lines. */
export const createImportCounts = () => {
  const counts = { episodes: 0, entities: 0, facts: 0, sagas: 0, communities: 0, same: 0 }
  return {
    counts,
    count: (type: LineType, isNew: boolean): void => {
      const key = isNew ? COUNTED[type] : 'same'
      if (key !== undefined) counts[key]++
    },
  }
}
