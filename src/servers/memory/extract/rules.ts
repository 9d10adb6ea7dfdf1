import { sentencesOf } from '../../../text/sentences.ts'
import { isObject } from '../input-checks.ts'
import type { EntityRef, Instant, NewDoc, NewEntity, NewFact } from '../model.ts'
import { datesIn } from '../text/dates.ts'
import { type EntitySpan, entitiesIn } from '../text/entities.ts'
import { NOTE, NOTE_LABELS, normaliseName } from '../text/names.ts'

/** The entities and facts that rules find in an episode, without a model. */
export interface RuleFindings {
  readonly entities: readonly NewEntity[]
  readonly facts: readonly NewFact[]
}

const MOST_FACTS = 2_000 // of one episode; the rest is found as passages
const MOST_ENTITIES = 500 // of one episode; each is a lookup and may be a new row
const FEWEST_LETTERS = 3 // "Ok!" states nothing
const QUOTE_CONFIDENCE = 0.5 // the sentence is certain, its entities are guessed

const LABELS: Readonly<Record<EntitySpan['kind'], readonly string[]>> = {
  name: ['Entity'],
  quoted: ['Entity'],
  code: ['Entity', 'Code'],
  url: ['Entity', 'Link'],
  handle: ['Entity', 'Person'],
}

const NOTE_REF: EntityRef = { name: NOTE, labels: NOTE_LABELS }

/** From the speaker, or the first name, to the next other name; the group's note stands in for a missing one. */
const endsOf = (actor: string | undefined, names: readonly string[]): readonly [EntityRef, EntityRef] => {
  const [first, ...rest] = actor === undefined ? names : [actor, ...names]
  const other = rest.find(name => normaliseName(name) !== normaliseName(first ?? ''))
  return [first === undefined ? NOTE_REF : { name: first }, other === undefined ? NOTE_REF : { name: other }]
}

/** A sentence holds from its first date on, or else from when it was said; "until" ends it, and a deadline does neither. */
const timesOf = (text: string, reference: Instant): Pick<NewFact, 'validAt' | 'invalidAt' | 'granularity'> => {
  const dates = datesIn(text, new Date(reference))
  const invalidAt = dates.find(({ role }) => role === 'end')?.end
  const first = dates.find(
    ({ role, start, end }) =>
      start <= (invalidAt ?? start) && (role === 'start' || (role === 'deadline' && end < reference)),
  )
  if (first) return { validAt: first.start, granularity: first.granularity, invalidAt }
  const isOver = invalidAt !== undefined && invalidAt < reference
  return isOver ? { invalidAt } : { validAt: reference, granularity: 'second', invalidAt }
}

const HAS_WORD = /[a-z0-9]{3}/i // a cheap test that most sentences pass
const isStatement = ({ text }: { readonly text: string }): boolean =>
  HAS_WORD.test(text) || text.replace(/[^\p{L}\p{N}]/gu, '').length >= FEWEST_LETTERS

const factsOf = (
  doc: NewDoc,
  place: number,
  reference: Instant,
  isKnown: (norm: string) => boolean,
  isKept: (name: string) => boolean,
): NewFact[] => {
  const isSpeaker = doc.actor !== undefined && normaliseName(doc.actor) !== '' && isKept(doc.actor)
  const actor = isSpeaker ? doc.actor : undefined
  return sentencesOf(doc.text)
    .filter(isStatement)
    .map(({ text }): NewFact => {
      const names = entitiesIn(text, isKnown).map(span => span.text)
      const [source, target] = endsOf(actor, names.filter(isKept))
      return {
        source,
        target,
        name: actor === undefined ? 'MENTIONS' : 'SAYS',
        fact: text,
        ...timesOf(text, reference),
        origin: 'rule',
        confidence: QUOTE_CONFIDENCE,
        doc: place,
      }
    })
}

/** The entities of the passages in order, up to MOST_ENTITIES; `isComplete` is false when there are more. */
const entitiesOf = (docs: readonly NewDoc[]): { entities: readonly NewEntity[]; isComplete: boolean } => {
  const known = new Map<string, NewEntity>()
  for (const { actor, text } of docs) {
    const speaker = actor === undefined ? [] : [{ name: actor, labels: ['Entity', 'Person'] }]
    const spans = entitiesIn(text).map(span => ({ name: span.text, labels: LABELS[span.kind] }))
    for (const entity of [...speaker, ...spans]) {
      const norm = normaliseName(entity.name)
      if (norm === '' || known.has(norm)) continue
      if (known.size >= MOST_ENTITIES) return { entities: [...known.values()], isComplete: false }
      known.set(norm, entity)
    }
  }
  return { entities: [...known.values()], isComplete: true }
}

/** Reads passages by rules: every sentence is a fact that quotes it, every name in it an entity. */
export const readByRules = (docs: readonly NewDoc[], reference: Instant): RuleFindings => {
  const { entities, isComplete } = entitiesOf(docs)
  const norms = new Set(entities.map(entity => normaliseName(entity.name)))
  const isKnown = (norm: string): boolean => norms.has(norm)
  const isKept = isComplete ? () => true : (name: string) => isKnown(normaliseName(name))
  const facts: NewFact[] = []
  for (const [place, doc] of docs.entries()) {
    if (facts.length >= MOST_FACTS) break
    facts.push(...factsOf(doc, place, reference, isKnown, isKept))
  }
  return { entities, facts: facts.slice(0, MOST_FACTS) }
}

const MOST_JSON_FACTS = 500
const MOST_JSON_DEPTH = 16
const LONGEST_JSON_NAME = 80
const JSON_CONFIDENCE = 0.7
const NAME_KEYS = ['name', 'title', 'id', 'key'] as const

const isScalar = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value)

/** `employerName` and `employer-name` are the relation EMPLOYER_NAME. */
const relationOf = (key: string): string =>
  key
    .replace(/(?<=\p{Ll})(?=\p{Lu})/gu, '_')
    .replace(/[^\p{L}\p{N}]+/gu, '_')
    .replace(/^_+|_+$/g, '')
    .toUpperCase() || 'HAS'

const nameIn = (value: unknown): string | undefined => {
  const named = isObject(value) ? NAME_KEYS.map(key => value[key]).find(isScalar) : isScalar(value) ? value : undefined
  const name = named === undefined ? '' : String(named).trim()
  return name === '' || name.length > LONGEST_JSON_NAME || normaliseName(name) === '' ? undefined : name
}

/** Reads the relations in a JSON text: from the name of an object, by the key, to the name or scalar value it holds. */
export const readJson = (body: string): RuleFindings => {
  const entities = new Map<string, NewEntity>()
  const facts: NewFact[] = []

  const addFact = (source: string, key: string, value: unknown): void => {
    const target = nameIn(value)
    if (target === undefined || normaliseName(target) === normaliseName(source) || facts.length >= MOST_JSON_FACTS)
      return
    for (const name of [source, target]) {
      const norm = normaliseName(name)
      if (!entities.has(norm)) entities.set(norm, { name, labels: ['Entity'] })
    }
    const relation = relationOf(key)
    facts.push({
      source: { name: source },
      target: { name: target },
      name: relation,
      fact: `${source} ${relation.toLowerCase().replaceAll('_', ' ')}: ${target}`,
      origin: 'rule',
      confidence: JSON_CONFIDENCE,
    })
  }
  /** The members of an object without a name belong to the object around it. */
  const walk = (value: unknown, owner: string | undefined, depth: number): void => {
    if (depth > MOST_JSON_DEPTH || facts.length >= MOST_JSON_FACTS) return
    if (Array.isArray(value)) for (const item of value) walk(item, owner, depth + 1)
    if (!isObject(value)) return
    const self = nameIn(value) ?? owner
    for (const [key, member] of Object.entries(value)) {
      for (const item of Array.isArray(member) ? member : [member]) if (self !== undefined) addFact(self, key, item)
      walk(member, self, depth + 1)
    }
  }

  try {
    walk(JSON.parse(body), undefined, 0)
  } catch {
    return { entities: [], facts: [] }
  }
  return { entities: [...entities.values()], facts }
}
