import type { FactView } from '../../../protocol/memory-views.ts'
import { formatAbsolute } from '../../parts/format.ts'

const DAY_MS = 86_400_000
const LATEST = 8.64e15 // the largest time value of a Date

/** A time as a date; most facts say on which day they became true or ended, as the first or last moment of it in UTC. */
export const dayText = (at: number): string => {
  if (Math.abs(at) > LATEST) return 'an impossible date'
  return at % DAY_MS === 0 || (at + 1) % DAY_MS === 0
    ? new Date(at).toISOString().replace(/T.*/, '')
    : formatAbsolute(at).slice(0, 16)
}

type Span = Pick<FactView, 'validFrom' | 'validUntil'>

/** When a fact was true, in words. */
export const spanText = ({ validFrom, validUntil }: Span): string => {
  if (validFrom !== undefined && validUntil !== undefined) return `${dayText(validFrom)} – ${dayText(validUntil)}`
  if (validFrom !== undefined) return `since ${dayText(validFrom)}`
  return validUntil === undefined ? 'no date' : `until ${dayText(validUntil)}`
}

/** Whether a fact is no longer true, or was replaced by another. */
export const isPast = ({ validUntil, retiredAt }: Pick<FactView, 'validUntil' | 'retiredAt'>, now: number): boolean =>
  retiredAt !== undefined || (validUntil !== undefined && validUntil <= now)

/** The value of a date field. */
export const dateValue = (at: number | undefined): string =>
  at === undefined || Math.abs(at) > LATEST ? '' : new Date(at).toISOString().slice(0, 10)

/** The day of a time as the user reads it, for headings. */
export const dayHeading = (at: number, now: number): string => {
  const day = dayOf(at)
  if (day === dayOf(now)) return 'Today'
  return day === dayOf(now - DAY_MS) ? 'Yesterday' : day
}

export const dayOf = (at: number): string => (Math.abs(at) > LATEST ? '' : formatAbsolute(at).slice(0, 10))
