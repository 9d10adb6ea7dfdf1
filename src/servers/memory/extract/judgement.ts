import type { Entity, Fact, Instant } from '../model.ts'
import type { Question } from './chat.ts'
import { type Findings, Unusable } from './findings.ts'
import type { Known } from './known.ts'
import { exactly } from './question-of-material.ts'

/** What a model made of what was found beside what is known. */
export interface Judgement {
  readonly sameEntity: ReadonlyMap<number, Entity>
  readonly sameFact: ReadonlyMap<number, Fact>
  readonly contradicted: ReadonlyMap<number, readonly Fact[]>
}

export const NO_JUDGEMENT: Judgement = { sameEntity: new Map(), sameFact: new Map(), contradicted: new Map() }

const number = { type: 'integer' }
const maybe = { type: ['integer', 'null'] }

const SCHEMA = exactly({
  entities: { type: 'array', items: exactly({ entity: number, same_as: maybe }) },
  facts: {
    type: 'array',
    items: exactly({ fact: number, same_as: maybe, contradicts: { type: 'array', items: number } }),
  },
})

const SYSTEM = `You keep the memory of an agent. New entities and facts were found; beside each stand known ones, with numbers, that may have to do with it. Answer as JSON with two lists.

"entities": for each new entity {"entity": its number, "same_as": the number of the known entity that is the very same person, place or thing under another name, or null}. Alike is not the same.
"facts": for each new fact {"fact": its number, "same_as": the number of the known fact that says the same, or null, "contradicts": numbers of known facts that cannot be true at the same time as the new one}. What is more exact or differs only in its date is not a contradiction; a new value for what has one value at a time (where somebody lives, what something costs) is one.

Use only the numbers that stand beside the one you judge. When in doubt, null and an empty list.`

const date = (at: Instant | undefined): string => (at === undefined ? '?' : new Date(at).toISOString().slice(0, 10))

const entityLines = ({ entities }: Findings, { likely }: Known): string[] =>
  [...likely].flatMap(([place, others]) => [
    `entity ${place}: ${entities[place]?.name} ${entities[place]?.summary}`.trim(),
    ...others.map((other, index) => `  known ${index}: ${other.name} ${other.summary.slice(0, 200)}`.trimEnd()),
  ])

const factLines = ({ facts }: Findings, known: Known): string[] =>
  [...known.facts].flatMap(([place, others]) => [
    `fact ${place}: ${facts[place]?.fact} (since ${date(facts[place]?.validAt)})`,
    ...others.map((other, index) => `  known ${index}: ${other.fact} (since ${date(other.validAt)})`),
  ])

/** Asks about everything that was found at once; nothing to ask when nothing is known that comes near. */
export const questionAbout = (findings: Findings, known: Known, model: string): Question | undefined => {
  if (known.likely.size === 0 && known.facts.size === 0) return undefined
  const user = ['## New entities', ...entityLines(findings, known), '', '## New facts', ...factLines(findings, known)]
  return { model, system: SYSTEM, user: user.join('\n'), name: 'judgement', schema: SCHEMA }
}

type Members = Readonly<Record<string, unknown>>

const listIn = (answer: unknown, key: string): readonly Members[] => {
  const list = typeof answer === 'object' && answer !== null ? (answer as Members)[key] : undefined
  if (!Array.isArray(list)) throw new Unusable(`The answer of the model has no list of ${key}.`)
  return list.filter(item => typeof item === 'object' && item !== null)
}

/** The one that was offered under this number, if it was. */
const offered = <Item>(items: readonly Item[] | undefined, index: unknown): Item | undefined =>
  typeof index === 'number' ? items?.[index] : undefined

/** Reads an answer. A number that was not offered, or a sameness of facts about different things, counts as not said. */
export const readJudgement = (answer: unknown, findings: Findings, known: Known): Judgement => {
  const sameEntity = new Map<number, Entity>()
  for (const { entity: place, same_as: index } of listIn(answer, 'entities')) {
    const same = offered(known.likely.get(place as number), index)
    if (same) sameEntity.set(place as number, same)
  }
  const idOf = (place: number): number | undefined => (sameEntity.get(place) ?? known.named.get(place))?.id
  const sameFact = new Map<number, Fact>()
  const contradicted = new Map<number, readonly Fact[]>()
  for (const { fact: place, same_as: index, contradicts } of listIn(answer, 'facts')) {
    const found = findings.facts[place as number]
    const others = known.facts.get(place as number)
    if (!found || !others) continue
    const ends = [idOf(found.source), idOf(found.target)]
    const same = offered(others, index)
    const isSame = same !== undefined && ends.includes(same.sourceId) && ends.includes(same.targetId)
    if (isSame) sameFact.set(place as number, same)
    const against = (Array.isArray(contradicts) ? contradicts : [])
      .flatMap(at => offered(others, at) ?? [])
      .filter(other => other !== same && (ends.includes(other.sourceId) || ends.includes(other.targetId)))
    if (!isSame && against.length > 0) contradicted.set(place as number, [...new Set(against)])
  }
  return { sameEntity, sameFact, contradicted }
}
