import { HEADER, LINE_TYPES, type LineType } from './export-lines.ts'
import { isGroupId } from './input-checks.ts'
import type { Instant } from './model.ts'
import { StoreError } from './store.ts'

/** One line of an export, read but not yet believed. */
export interface Line {
  readonly number: number
  readonly type: string
  readonly members: Readonly<Record<string, unknown>>
}

const refuse = (line: number, why: string): never => {
  throw new StoreError(
    'invalid',
    `Line ${line} of the import ${why}. Some of what came before it is stored; correct it and import all again, which stores nothing twice.`,
  )
}

/** Reads one line; empty ones are nothing. */
export const readLine = (text: string, number: number): Line | undefined => {
  if (text.trim() === '') return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return refuse(number, 'is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refuse(number, 'is not an object')
  const members = value as Readonly<Record<string, unknown>>
  if (typeof members.group === 'string' && !isGroupId(members.group))
    return refuse(
      number,
      `names a group ${JSON.stringify(members.group.slice(0, 80))}, and only letters, digits, - and _ may be in it`,
    )
  return { number, type: String(members.type), members }
}

/** Refuses what is not an export of ours, or one of a later version. */
export const checkHeader = ({ number, type, members }: Line): void => {
  if (type !== HEADER.type) refuse(number, `should say {"type":"${HEADER.type}", …}: this is not an export of a memory`)
  if (typeof members.version !== 'number' || members.version > HEADER.version)
    refuse(number, `has version ${String(members.version)}, and at most ${HEADER.version} is understood here`)
}

/** What a line is about; a type nobody knows is refused. */
export const typeOf = ({ number, type }: Line): LineType =>
  LINE_TYPES.find(known => known === type) ?? refuseType(number, type)

const refuseType = (line: number, type: string): never => {
  throw new StoreError('invalid', `Line ${line} of the import is of an unknown type "${type}".`)
}

/** A member that must be text. */
export const textIn = ({ number, members }: Line, key: string): string => {
  const value = members[key]
  return typeof value === 'string' ? value : refuse(number, `has no text "${key}"`)
}

/** A member that is text or nothing. */
export const maybeTextIn = ({ members }: Line, key: string): string | null => {
  const value = members[key]
  return typeof value === 'string' ? value : null
}

/** A member that is a number, or the given one. */
export const numberIn = ({ members }: Line, key: string, absent: number): number => {
  const value = members[key]
  return typeof value === 'number' && Number.isFinite(value) ? value : absent
}

/** A member that is a date or nothing. */
export const maybeDateIn = (line: Line, key: string): Instant | null => {
  const value = line.members[key]
  if (value === null || value === undefined) return null
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(at) ? refuse(line.number, `has no date in "${key}"`) : at
}

/** A member that must be a date. */
export const dateIn = (line: Line, key: string): Instant =>
  maybeDateIn(line, key) ?? refuse(line.number, `has no date in "${key}"`)

/** A member that is a list, or an empty one. */
export const listIn = ({ number, members }: Line, key: string): readonly unknown[] => {
  const value = members[key] ?? []
  return Array.isArray(value) ? value : refuse(number, `has no list "${key}"`)
}

/** The texts among a list. */
export const textsIn = (line: Line, key: string): readonly string[] =>
  listIn(line, key).filter(item => typeof item === 'string')

/** A member as JSON text for a column. */
export const jsonIn = ({ members }: Line, key: string): string => JSON.stringify(members[key] ?? {})
