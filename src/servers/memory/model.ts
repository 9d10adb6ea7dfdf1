/** Milliseconds since 1970 in UTC: what both drivers store and what search reckons with. */
export type Instant = number

/** How exact a date is: "next month" is a month, not a midnight. */
export type Granularity = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year'

/** What an episode's body is. */
export type Source = 'text' | 'message' | 'json' | 'fact_triple'

/** Who stated a fact: the calling agent, a model, a rule of ours, or an explicit triplet. */
export type Origin = 'agent' | 'llm' | 'rule' | 'triplet'

/** Free JSON members of an entity, a fact or an episode. */
export type Attributes = Readonly<Record<string, unknown>>

/** Whether an episode's background work is done; without any it is `ready` at once. */
export type EpisodeState = 'ready' | 'pending' | 'failed'

/** One thing somebody told us, raw and unchanged. */
export interface Episode {
  readonly id: number
  readonly uuid: string
  readonly group: string
  readonly name: string
  readonly content: string
  readonly source: Source
  readonly sourceDescription: string
  readonly actor: string | undefined
  readonly createdAt: Instant
  /** When it happened, which may be long before we were told. */
  readonly validAt: Instant
  readonly saga: string | undefined
  /** The episode before it in its saga. */
  readonly previous: string | undefined
  readonly meta: Attributes
  readonly state: EpisodeState
  readonly error: string | undefined
}

/** A person, place or thing that facts are about. */
export interface Entity {
  readonly id: number
  readonly uuid: string
  readonly group: string
  readonly name: string
  readonly labels: readonly string[]
  readonly summary: string
  readonly attributes: Attributes
  readonly createdAt: Instant
}

/** A statement between two entities with its four times. */
export interface Fact {
  readonly id: number
  readonly uuid: string
  readonly group: string
  readonly sourceId: number
  readonly targetId: number
  readonly source: string
  readonly target: string
  readonly name: string
  readonly fact: string
  readonly validAt: Instant | undefined
  readonly granularity: Granularity | undefined
  readonly invalidAt: Instant | undefined
  readonly createdAt: Instant
  readonly expiredAt: Instant | undefined
  readonly referenceTime: Instant | undefined
  readonly attributes: Attributes
  readonly origin: Origin
  readonly confidence: number
  readonly supersededBy: string | undefined
  /** The episodes that stated it, first teller first. */
  readonly episodes: readonly string[]
  /** The passage that first stated it; facts without one were given, not read. */
  readonly docId: number | undefined
}

/** A passage or turn of an episode: what full-text search finds. */
export interface Doc {
  readonly id: number
  readonly episodeId: number
  readonly episode: string
  readonly group: string
  readonly kind: DocKind
  /** Its place within the episode, from 0. */
  readonly ord: number
  readonly text: string
  readonly actor: string | undefined
  readonly prev: string
  readonly next: string
  /** Its date in words, so that "in May" finds it. */
  readonly dt: string
  readonly validAt: Instant
  readonly episodeName: string
  readonly sourceDescription: string
}

/** How a passage was cut out of its episode. */
export type DocKind = 'turn' | 'passage' | 'leaf'

/** A named, ordered chain of episodes. */
export interface Saga {
  readonly uuid: string
  readonly group: string
  readonly name: string
  readonly summary: string
  readonly createdAt: Instant
  /** Episodes up to this row are part of the summary. */
  readonly summarisedTo: number
}

/** Entities that hang together, found by label propagation. */
export interface Community {
  readonly uuid: string
  readonly group: string
  readonly name: string
  readonly summary: string
  readonly createdAt: Instant
  readonly members: readonly string[]
}

/** What background work may be about. */
export type JobKind = 'extract' | 'embed' | 'summarise' | 'communities'

/** Waiting for its time, held by a worker, or given up; a finished job is gone. */
export type JobState = 'waiting' | 'leased' | 'failed'

/** One piece of durable background work. */
export interface Job {
  readonly id: number
  readonly group: string
  readonly episode: string | undefined
  readonly kind: JobKind
  readonly state: JobState
  readonly attempts: number
  readonly nextAt: Instant
  readonly leaseOwner: string | undefined
  readonly leaseUntil: Instant | undefined
  readonly error: string | undefined
  /** What the worker needs besides the episode, e.g. excluded entity types. */
  readonly payload: Attributes
  readonly createdAt: Instant
}

/** Names one entity: by uuid when it is known, else by name, which finds or makes it. */
export type EntityRef = { readonly uuid: string } | { readonly name: string; readonly labels?: readonly string[] }

/** An entity as an agent, a rule or a model names it; it is resolved against those of its group. */
export interface NewEntity {
  readonly name: string
  readonly uuid?: string
  readonly labels?: readonly string[]
  readonly aliases?: readonly string[]
  readonly summary?: string
  readonly attributes?: Attributes
}

/** A fact as it is handed in; endpoints are resolved, dates checked, older facts closed. */
export interface NewFact {
  readonly uuid?: string
  readonly source: EntityRef
  readonly target: EntityRef
  readonly name: string
  readonly fact: string
  readonly validAt?: Instant | undefined
  readonly granularity?: Granularity | undefined
  readonly invalidAt?: Instant | undefined
  readonly attributes?: Attributes
  readonly origin: Origin
  readonly confidence: number
  /** Which passage of the same enrichment states it. */
  readonly doc?: number
  /** uuids of facts that no longer hold because of this one. */
  readonly supersedes?: readonly string[]
  /** uuids of facts a model found contradicted: closed by their dates only. */
  readonly contradicts?: readonly string[]
  /** The uuid of a fact that already says this; the episode is added to it instead. */
  readonly sameAs?: string
  /** Its source can have one such relation at a time, so another target closes the old one. */
  readonly singleValued?: boolean
}

/** A passage to index, in the order of the body. */
export interface NewDoc {
  readonly kind: DocKind
  readonly text: string
  readonly actor?: string | undefined
  readonly dt: string
  /** The text as the index should read it, where that differs: letter pairs of scripts without spaces and the like. */
  readonly indexText?: string | undefined
}

/** An episode as it is handed in. */
export interface NewEpisode {
  /** Given: create it under this uuid, or replace what is there. */
  readonly uuid?: string | undefined
  readonly group: string
  readonly name: string
  readonly content: string
  readonly source: Source
  readonly sourceDescription: string
  readonly actor?: string | undefined
  readonly validAt: Instant
  readonly saga?: string | undefined
  readonly sagaPrevious?: string | undefined
  readonly meta?: Attributes
  /** Episodes of one conversation share this key; their passages are each other's context. */
  readonly chain?: string | undefined
}

/** Background work to be kept together with the episode. */
export interface NewJob {
  readonly kind: JobKind
  readonly payload?: Attributes
  readonly notBefore?: Instant
}

/** Everything known about an episode at the moment it is stored. */
export interface Enrichment {
  readonly docs: readonly NewDoc[]
  readonly entities: readonly NewEntity[]
  readonly facts: readonly NewFact[]
  readonly jobs?: readonly NewJob[]
}
