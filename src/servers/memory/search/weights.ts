import type { DocWeights, EntityWeights, FactWeights } from '../store.ts'

/** All weights of the search. */
export interface Weights {
  readonly docs: DocWeights
  readonly facts: FactWeights
  readonly entities: EntityWeights
  /** Factors on the score of a passage or a fact. */
  readonly boosts: {
    readonly actor: number // the query names the speaker
    readonly question: number // the turn is a question
    readonly when: number // the query asks for a time and the passage states one
    readonly inRange: number // it happened in the period of the query
    readonly linked: number // the fact is about an entity the query names
    readonly expired: number // the fact no longer holds
  }
  /** The weight of each list in the fusion; a greater `constant` lessens the advantage of the first ranks. */
  readonly fusion: {
    readonly constant: number
    readonly passages: number
    readonly given: number
    readonly named: number
    readonly graph: number
    readonly vectors: number
  }
  readonly candidates: number // per list
  readonly hops: number // from the entities that the query names
}

/** Tuned on English conversations of two people, and checked on other conversations and notes about code: docs/benchmarks.md. */
export const WEIGHTS: Weights = {
  docs: { text: 1, actor: 1, prev: 0.5, next: 0.4, dt: 0.2 },
  facts: { fact: 1, ents: 0.5, dt: 0.2 },
  entities: { name: 3, aliases: 2, summary: 1 },
  boosts: { actor: 1.25, question: 0.8, when: 1.25, inRange: 1.2, linked: 1.15, expired: 0.6 },
  fusion: { constant: 10, passages: 2, given: 2, named: 3, graph: 0.1, vectors: 1 },
  candidates: 200,
  hops: 2,
}
