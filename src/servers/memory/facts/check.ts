import type { EntityRef, Instant, NewFact } from '../model.ts'
import { StoreError } from '../store.ts'
import { normaliseName } from '../text/names.ts'

const FURTHEST = 8.64e15 // the last moment a date can name

const refuse = (fact: NewFact, why: string): never => {
  const shown = fact.fact.length > 80 ? `${fact.fact.slice(0, 80)}…` : fact.fact
  throw new StoreError('invalid', `The fact "${shown}" ${why}. Nothing was stored; correct it and try again.`)
}

const iso = (at: Instant): string => new Date(at).toISOString()

const isDate = (at: Instant | undefined): boolean => at === undefined || Math.abs(at) <= FURTHEST

const endOf = (ref: EntityRef): string => ('uuid' in ref ? `uuid:${ref.uuid}` : normaliseName(ref.name))

const checkOne = (fact: NewFact): void => {
  const { validAt, invalidAt, supersedes = [], contradicts = [], sameAs, uuid } = fact
  if (fact.fact.trim() === '') refuse(fact, 'says nothing: its text is empty')
  if (fact.name.trim() === '') refuse(fact, 'has no relation name, like WORKS_AT')
  if (!isDate(validAt) || !isDate(invalidAt)) refuse(fact, 'has a date that does not exist')
  if (validAt !== undefined && invalidAt !== undefined && invalidAt < validAt)
    refuse(fact, `contradicts itself: it ends (${iso(invalidAt)}) before it begins (${iso(validAt)})`)
  if (uuid !== undefined && [...supersedes, ...contradicts].includes(uuid)) refuse(fact, 'supersedes itself')
  if (sameAs !== undefined && [...supersedes, ...contradicts].includes(sameAs))
    refuse(fact, 'is said to be the same as the fact it supersedes')
}

const overlap = (one: NewFact, other: NewFact): boolean =>
  one.validAt === other.validAt && one.invalidAt === undefined && other.invalidAt === undefined

/** Two facts of one call that give a single-valued relation two values at one time. */
const checkAgainst = (fact: NewFact, others: readonly NewFact[]): void => {
  const rival = others.find(other => endOf(other.target) !== endOf(fact.target) && overlap(fact, other))
  if (rival) refuse(fact, `contradicts "${rival.fact.slice(0, 80)}": ${fact.name} can have one value at a time`)
}

/** Refuses facts that cannot be true together, before anything is stored. */
export const checkFacts = (facts: readonly NewFact[]): void => {
  const single = new Map<string, NewFact[]>()
  for (const fact of facts) {
    checkOne(fact)
    if (!fact.singleValued) continue
    const key = `${endOf(fact.source)}\n${fact.name}`
    const others = single.get(key) ?? []
    checkAgainst(fact, others)
    single.set(key, [...others, fact])
  }
}
