import type { Instant } from '../model.ts'

/** The two times at which a fact was true and the one at which we retired it. */
export interface Span {
  readonly validAt: Instant | undefined
  readonly invalidAt: Instant | undefined
  readonly expiredAt: Instant | undefined
}

/** What becomes of a new fact and of the facts it contradicts. */
export interface Closing<Old extends Span> {
  readonly fresh: Span
  /** The older facts that end, with their new times. */
  readonly closed: readonly { readonly old: Old; readonly span: Span }[]
}

const isKnown = (at: Instant | undefined): at is Instant => at !== undefined

/** Whether one ended before the other began; such facts never contradicted each other. */
const isApart = (one: Span, other: Span): boolean =>
  (isKnown(one.invalidAt) && isKnown(other.validAt) && one.invalidAt <= other.validAt) ||
  (isKnown(one.validAt) && isKnown(other.invalidAt) && other.invalidAt <= one.validAt)

/** When the next contradicting fact began, if that is after the new one: we were told late. */
const nextBeginning = (fresh: Span, contradicted: readonly Span[]): Instant | undefined => {
  const { validAt } = fresh
  if (!isKnown(validAt)) return undefined
  const later = contradicted
    .map(old => old.validAt)
    .filter(isKnown)
    .filter(at => at > validAt)
  return later.length > 0 ? Math.min(...later) : undefined
}

const settle = (fresh: Span, contradicted: readonly Span[], now: Instant): Span => {
  if (isKnown(fresh.expiredAt)) return fresh
  if (isKnown(fresh.invalidAt)) return { ...fresh, expiredAt: now }
  const end = nextBeginning(fresh, contradicted)
  return end === undefined ? fresh : { ...fresh, invalidAt: end, expiredAt: now }
}

/**
 * Ends what a new fact contradicts, by dates alone: an older fact ends when the new one begins, a new one that was
 * told late ends when the next began, and facts whose times are apart or unknown are left alone.
 */
export const closeContradicted = <Old extends Span>(
  fresh: Span,
  contradicted: readonly Old[],
  now: Instant,
): Closing<Old> => {
  const settled = settle(fresh, contradicted, now)
  const { validAt } = settled
  if (!isKnown(validAt)) return { fresh: settled, closed: [] }
  const ended = contradicted.filter(old => !isApart(old, settled) && isKnown(old.validAt) && old.validAt < validAt)
  return {
    fresh: settled,
    closed: ended.map(old => ({ old, span: { ...old, invalidAt: validAt, expiredAt: old.expiredAt ?? now } })),
  }
}

/** Ends a fact because somebody said it is superseded, whatever its dates: not before it began, and not later than it already had ended. */
export const supersede = (old: Span, fresh: Span, now: Instant): Span => {
  const end = Math.max(fresh.validAt ?? now, old.validAt ?? Number.NEGATIVE_INFINITY)
  return { ...old, invalidAt: Math.min(end, old.invalidAt ?? end), expiredAt: old.expiredAt ?? now }
}
