import type { EntityRef, Instant, NewFact } from './model.ts'
import { StatementError } from './store.ts'
import { normaliseName } from './text/names.ts'

const LATEST_DATE = 8.64e15 // the largest time value of a Date

const reject = (fact: NewFact, why: string): never => {
  const shown = fact.fact.length > 80 ? `${fact.fact.slice(0, 80)}…` : fact.fact
  throw new StatementError(`The fact "${shown}" ${why}. Nothing was stored; correct it and try again.`)
}

const iso = (at: Instant): string => new Date(at).toISOString()

const isDate = (at: Instant | undefined): boolean => at === undefined || Math.abs(at) <= LATEST_DATE

const keyOf = (ref: EntityRef): string => ('uuid' in ref ? `uuid:${ref.uuid}` : normaliseName(ref.name))

const checkFact = (fact: NewFact): void => {
  const { validAt, invalidAt, supersedes = [], contradicts = [], sameAs, uuid } = fact
  if (fact.fact.trim() === '') reject(fact, 'says nothing: its text is empty')
  if (fact.name.trim() === '') reject(fact, 'has no relation name, like WORKS_AT')
  if (!isDate(validAt) || !isDate(invalidAt)) reject(fact, 'has a date that does not exist')
  if (validAt !== undefined && invalidAt !== undefined && invalidAt < validAt)
    reject(fact, `contradicts itself: it ends (${iso(invalidAt)}) before it begins (${iso(validAt)})`)
  if (uuid !== undefined && [...supersedes, ...contradicts].includes(uuid)) reject(fact, 'supersedes itself')
  if (sameAs !== undefined && [...supersedes, ...contradicts].includes(sameAs))
    reject(fact, 'is said to be the same as the fact it supersedes')
}

const isSameTime = (one: NewFact, other: NewFact): boolean =>
  one.validAt === other.validAt && one.invalidAt === undefined && other.invalidAt === undefined

/** Throws for facts that cannot be true together, before anything is stored. */
export const checkFacts = (facts: readonly NewFact[]): void => {
  const singleValued = new Map<string, NewFact[]>()
  for (const fact of facts) {
    checkFact(fact)
    if (!fact.singleValued) continue
    const key = `${keyOf(fact.source)}\n${fact.name}`
    const others = singleValued.get(key) ?? []
    const rival = others.find(other => keyOf(other.target) !== keyOf(fact.target) && isSameTime(fact, other))
    if (rival) reject(fact, `contradicts "${rival.fact.slice(0, 80)}": ${fact.name} can have one value at a time`)
    singleValued.set(key, [...others, fact])
  }
}

/** When a fact was true, and when it was retired here. */
export interface FactTimes {
  readonly validAt: Instant | undefined
  readonly invalidAt: Instant | undefined
  readonly expiredAt: Instant | undefined
}

/** The times of a new fact and of the older facts it ends. */
export interface Closing<Old extends FactTimes> {
  readonly fresh: FactTimes
  readonly closed: readonly { readonly old: Old; readonly span: FactTimes }[]
}

const isKnown = (at: Instant | undefined): at is Instant => at !== undefined

/** Whether a fact is valid at a time; without a beginning it always was, without an end it still is. */
export const isValidAt = ({ validAt, invalidAt }: Omit<FactTimes, 'expiredAt'>, at: Instant): boolean =>
  (validAt === undefined || validAt <= at) && (invalidAt === undefined || at < invalidAt)

/** Whether one ended before the other began: such facts do not contradict each other. */
const isApart = (one: FactTimes, other: FactTimes): boolean =>
  (isKnown(one.invalidAt) && isKnown(other.validAt) && one.invalidAt <= other.validAt) ||
  (isKnown(one.validAt) && isKnown(other.invalidAt) && other.invalidAt <= one.validAt)

/** A fact that arrives after one with a later beginning ends where that one begins. */
const endAtNext = (fresh: FactTimes, contradicted: readonly FactTimes[], now: Instant): FactTimes => {
  const { validAt } = fresh
  if (isKnown(fresh.expiredAt)) return fresh
  if (isKnown(fresh.invalidAt)) return fresh.invalidAt <= now ? { ...fresh, expiredAt: now } : fresh
  if (!isKnown(validAt)) return fresh
  const later = contradicted.flatMap(old => (isKnown(old.validAt) && old.validAt > validAt ? [old.validAt] : []))
  return later.length === 0 ? fresh : { ...fresh, invalidAt: Math.min(...later), expiredAt: now }
}

/**
 * Ends the facts that a new fact contradicts, by dates alone: an older fact ends when the new one begins, and a new one
 * that arrives late ends when the next one began. Facts whose times are apart or unknown stay as they are.
 */
export const closeContradicted = <Old extends FactTimes>(
  fresh: FactTimes,
  contradicted: readonly Old[],
  now: Instant,
): Closing<Old> => {
  const settled = endAtNext(fresh, contradicted, now)
  const { validAt } = settled
  if (!isKnown(validAt)) return { fresh: settled, closed: [] }
  const ended = contradicted.filter(old => !isApart(old, settled) && isKnown(old.validAt) && old.validAt < validAt)
  return {
    fresh: settled,
    closed: ended.map(old => ({ old, span: { ...old, invalidAt: validAt, expiredAt: old.expiredAt ?? now } })),
  }
}

/** Ends a fact that a caller named as superseded, whatever its dates: not before its beginning, nor after its known end. */
export const supersede = (old: FactTimes, fresh: FactTimes, now: Instant): FactTimes => {
  const end = Math.max(fresh.validAt ?? now, old.validAt ?? Number.NEGATIVE_INFINITY)
  return { ...old, invalidAt: Math.min(end, old.invalidAt ?? end), expiredAt: old.expiredAt ?? now }
}
