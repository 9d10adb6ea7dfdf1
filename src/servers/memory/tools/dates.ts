import type { Instant } from '../model.ts'

const ISO =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|z|[+-]\d{2}(?::?\d{2})?)?)?$/

/** Reads an ISO 8601 date or date and time; without an offset it is UTC. Undefined for anything else. */
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
  // A day the calendar does not have has become another one.
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

/** How a date that cannot be read is answered. */
export const notADate = (given: string): string =>
  `${JSON.stringify(given.slice(0, 60))} is not an ISO 8601 date; write 2025-03-01 or 2025-03-01T14:30:00Z`
