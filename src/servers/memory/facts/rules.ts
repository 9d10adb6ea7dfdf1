import type { EntityRef, Granularity, Instant, NewDoc, NewEntity, NewFact } from '../model.ts'
import { datesIn } from '../text/dates.ts'
import { type EntitySpan, entitiesIn } from '../text/entities.ts'
import { NOTE, NOTE_LABELS, normaliseName } from '../text/names.ts'
import { sentencesOf } from '../text/sentences.ts'

/** What rules read out of an episode. */
export interface Reading {
  readonly entities: readonly NewEntity[]
  readonly facts: readonly NewFact[]
}

const MOST_FACTS = 2_000 // of one episode; what lies beyond is found as passages
const MOST_ENTITIES = 500 // of one episode; each is looked up and may be new
const FEWEST_LETTERS = 3 // "Ok!" states nothing
const CONFIDENCE = 0.5 // a quoted sentence is certain, what it is about is guessed

const LABELS: Readonly<Record<EntitySpan['kind'], readonly string[]>> = {
  name: ['Entity'],
  quoted: ['Entity'],
  code: ['Entity', 'Code'],
  url: ['Entity', 'Link'],
  handle: ['Entity', 'Person'],
}

const NOTE_REF: EntityRef = { name: NOTE, labels: NOTE_LABELS }

/** Who says it and what it is about: the speaker or the first thing named, and the next thing named or the group's note. */
const endsOf = (actor: string | undefined, names: readonly string[]): readonly [EntityRef, EntityRef] => {
  const [first, ...rest] = actor === undefined ? names : [actor, ...names]
  const other = rest.find(name => normaliseName(name) !== normaliseName(first ?? ''))
  return [first === undefined ? NOTE_REF : { name: first }, other === undefined ? NOTE_REF : { name: other }]
}

const whenOf = (text: string, reference: Instant): { validAt: Instant; granularity: Granularity } => {
  const [first] = datesIn(text, new Date(reference))
  return first
    ? { validAt: first.start, granularity: first.granularity }
    : { validAt: reference, granularity: 'second' }
}

const WORDED = /[a-z0-9]{3}/i // most sentences; as many letters as are needed
const statesSomething = ({ text }: { readonly text: string }): boolean =>
  WORDED.test(text) || text.replace(/[^\p{L}\p{N}]/gu, '').length >= FEWEST_LETTERS

const nameable = (name: string): boolean => normaliseName(name) !== ''

const factsOf = (
  doc: NewDoc,
  place: number,
  reference: Instant,
  isKnown: (norm: string) => boolean,
  isTaken: (name: string) => boolean,
): NewFact[] => {
  const actor = doc.actor !== undefined && nameable(doc.actor) && isTaken(doc.actor) ? doc.actor : undefined
  return sentencesOf(doc.text)
    .filter(statesSomething)
    .map(({ text }) => {
      const [source, target] = endsOf(
        actor,
        entitiesIn(text, isKnown)
          .map(span => span.text)
          .filter(isTaken),
      )
      const name = actor === undefined ? 'MENTIONS' : 'SAYS'
      return {
        source,
        target,
        name,
        fact: text,
        ...whenOf(text, reference),
        origin: 'rule',
        confidence: CONFIDENCE,
        doc: place,
      }
    })
}

/** The things that passages name, in their order, as many as one episode may bring. */
const namedIn = (docs: readonly NewDoc[]): { readonly entities: readonly NewEntity[]; readonly isWhole: boolean } => {
  const known = new Map<string, NewEntity>()
  for (const { actor, text } of docs) {
    const speaker = actor === undefined ? [] : [{ name: actor, labels: ['Entity', 'Person'] }]
    const spans = entitiesIn(text).map(span => ({ name: span.text, labels: LABELS[span.kind] }))
    for (const entity of [...speaker, ...spans]) {
      const norm = normaliseName(entity.name)
      if (norm === '' || known.has(norm)) continue
      if (known.size >= MOST_ENTITIES) return { entities: [...known.values()], isWhole: false }
      known.set(norm, entity)
    }
  }
  return { entities: [...known.values()], isWhole: true }
}

/** Reads passages by rules alone: every sentence is a fact that quotes it, every name in it an entity. */
export const readByRules = (docs: readonly NewDoc[], reference: Instant): Reading => {
  const { entities, isWhole } = namedIn(docs)
  const norms = new Set(entities.map(entity => normaliseName(entity.name)))
  const isKnown = (norm: string): boolean => norms.has(norm)
  const isTaken = isWhole ? () => true : (name: string) => isKnown(normaliseName(name))
  const facts: NewFact[] = []
  for (const [place, doc] of docs.entries()) {
    if (facts.length >= MOST_FACTS) break
    facts.push(...factsOf(doc, place, reference, isKnown, isTaken))
  }
  return { entities, facts: facts.slice(0, MOST_FACTS) }
}
