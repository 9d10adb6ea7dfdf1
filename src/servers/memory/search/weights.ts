import type { ColumnWeights } from '../store.ts'

/** All weights of the search. Tuned on English conversations of two people, checked on others: docs/benchmarks.md. */
export const WEIGHTS = {
  docs: { text: 1, actor: 1, prev: 0.5, next: 0.4, dt: 0.2 } satisfies ColumnWeights<'doc'>,
  facts: { fact: 1, ents: 0.5, dt: 0.2 } satisfies ColumnWeights<'fact'>,
  entities: { name: 3, aliases: 2, summary: 1 } satisfies ColumnWeights<'entity'>,
  /** Factors on the score of a passage or a fact. */
  boosts: {
    actor: 1.25, // the query names the speaker
    question: 0.8, // the turn is a question
    when: 1.25, // the query asks for a time and the passage states one
    inRange: 1.2, // it happened in the period of the query
    linked: 1.15, // the fact is about an entity that the query names
    expired: 0.6, // the fact is no longer valid
  },
  /** The weight of each list in the fusion; a greater `constant` lessens the advantage of the first ranks. */
  fusion: { constant: 10, passages: 2, given: 2, named: 3, graph: 0.1, vectors: 1 },
  candidates: 200, // per list
  hops: 2, // from the entities that the query names
}

export type Weights = Readonly<typeof WEIGHTS>
