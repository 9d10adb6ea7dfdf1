import type { Instant } from './model.ts'

/** The request cannot be done as given; the message reaches the caller. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
}

const GROUP_ID = /^[A-Za-z0-9_-]{1,255}$/

export const isGroupId = (id: string): boolean => GROUP_ID.test(id)

/** Returns a valid group id, or throws. */
export const checkGroupId = (id: string): string => {
  if (isGroupId(id)) return id
  throw new RequestError(
    `group_id ${JSON.stringify(id.slice(0, 80))} must contain only letters, digits, dashes and underscores`,
  )
}

/** The most characters of each kind of text. */
export const LONGEST = { name: 500, sentence: 10_000, uuid: 200 } as const

/** Throws if the text is longer than `most`; `hint` says where a longer one belongs. */
export const checkLength = (what: string, given: string | undefined, most: number, hint = ''): void => {
  if (given !== undefined && given.length > most)
    throw new RequestError(`${what} has ${given.length} characters; at most ${most} fit${hint}`)
}

const ISO =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|z|[+-]\d{2}(?::?\d{2})?)?)?$/

/** Reads an ISO 8601 date or date and time, in UTC without an offset. Undefined for anything else. */
export const readDate = (given: string): Instant | undefined => {
  const match = ISO.exec(given.trim())
  if (!match) return undefined
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map(part => Number(part ?? 0))
  if (hour > 23 || minute > 59 || second > 59) return undefined
  const at = new Date(0)
  at.setUTCFullYear(year, month - 1, day)
  at.setUTCHours(hour, minute, second, Number((match[7] ?? '0').padEnd(3, '0').slice(0, 3)))
  // Date turns 30 February into 2 March.
  if (at.getUTCMonth() !== month - 1 || at.getUTCDate() !== day) return undefined
  const offset = offsetMinutes(match[8])
  return offset === undefined ? undefined : at.getTime() - offset * 60_000
}

const offsetMinutes = (zone = 'Z'): number | undefined => {
  if (zone === 'Z' || zone === 'z') return 0
  const [hours, minutes] = [Number(zone.slice(1, 3)), Number(zone.slice(3).replace(':', '') || 0)]
  if (hours > 23 || minutes > 59) return undefined
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}

export const notDateText = (given: string): string =>
  `${JSON.stringify(given.slice(0, 60))} is not an ISO 8601 date; write 2025-03-01 or 2025-03-01T14:30:00Z`

/** Reads a date that a caller gave, or throws; `prefix` names the argument. */
export const checkDate = (given: string, prefix = ''): Instant => {
  const at = readDate(given)
  if (at !== undefined) return at
  throw new RequestError(`${prefix}${notDateText(given)}`)
}

type Members = Readonly<Record<string, unknown>>

/** Whether a value is a JSON object. */
export const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** A value that should be a JSON object, or an empty one. */
export const membersOf = (value: unknown): Members => (isObject(value) ? value : {})
