/** Milliseconds since 1970 in UTC. */
export type Instant = number

/** How exact a date is: "next month" is a month, not a midnight. */
export type Granularity = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year'

/** The format of an episode's body. */
export type Source = 'text' | 'message' | 'json' | 'fact_triple'

/** The origin of a fact: the calling agent, a model, a built-in rule, or an explicit triplet. */
export type Origin = 'agent' | 'llm' | 'rule' | 'triplet'

/** Free JSON members of an entity, a fact or an episode. */
export type Attributes = Readonly<Record<string, unknown>>

/** Whether an episode's jobs are done; without any it is `ready` at once. */
export type EpisodeState = 'ready' | 'pending' | 'failed'

/** One message, text or JSON document, stored unchanged. */
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
  /** When it happened, which may be long before it was stored. */
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
  /** The episodes that stated it, the first one first. */
  readonly episodes: readonly string[]
  /** The passage that first stated it, if it was read from one. */
  readonly docId: number | undefined
}

/** A passage or turn of an episode: the unit of full-text search. */
export interface Doc {
  readonly id: number
  readonly episodeId: number
  readonly episode: string
  readonly group: string
  readonly kind: DocKind
  /** Its position within the episode, from 0. */
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
  /** The row id of the last episode that the summary covers. */
  readonly summarisedTo: number
}

/** Connected entities, found by label propagation. */
export interface Community {
  readonly uuid: string
  readonly group: string
  readonly name: string
  readonly summary: string
  readonly createdAt: Instant
  readonly members: readonly string[]
}

/** The kinds of background jobs. */
export type JobKind = 'extract' | 'embed' | 'summarise' | 'communities'

/** Waiting until it is due, leased by a worker, or given up; a finished job is deleted. */
export type JobState = 'waiting' | 'leased' | 'failed'

/** A durable background job. */
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
  /** Arguments besides the episode, for example excluded entity types. */
  readonly payload: Attributes
  readonly createdAt: Instant
}

/** A reference to an entity: by uuid, or by a name that is found or created. */
export type EntityRef = { readonly uuid: string } | { readonly name: string; readonly labels?: readonly string[] }

/** An entity to store; it is resolved against those of its group. */
export interface NewEntity {
  readonly name: string
  readonly uuid?: string | undefined
  readonly labels?: readonly string[] | undefined
  readonly aliases?: readonly string[] | undefined
  readonly summary?: string | undefined
  readonly attributes?: Attributes | undefined
}

/** A fact to store: its entities are resolved, its dates checked, older facts closed. */
export interface NewFact {
  readonly uuid?: string | undefined
  readonly source: EntityRef
  readonly target: EntityRef
  readonly name: string
  readonly fact: string
  readonly validAt?: Instant | undefined
  readonly granularity?: Granularity | undefined
  readonly invalidAt?: Instant | undefined
  readonly attributes?: Attributes | undefined
  readonly origin: Origin
  readonly confidence: number
  /** The index of the passage of the same enrichment that states it. */
  readonly doc?: number | undefined
  /** uuids of facts that this one replaces. */
  readonly supersedes?: readonly string[] | undefined
  /** uuids of facts that a model found contradicted: closed by their dates only. */
  readonly contradicts?: readonly string[] | undefined
  /** The uuid of a fact that states the same; the episode is added to it instead. */
  readonly sameAs?: string | undefined
  /** Whether its source has one such relation at a time, so that a new target closes the old fact. */
  readonly singleValued?: boolean | undefined
}

/** A passage to index, in the order of the body. */
export interface NewDoc {
  readonly kind: DocKind
  readonly text: string
  readonly actor?: string | undefined
  readonly dt: string
  /** The text to index if it differs, for example letter pairs of scripts without spaces. */
  readonly indexText?: string | undefined
}

/** An episode to store. */
export interface NewEpisode {
  /** If given: create the episode under this uuid, or replace it. */
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

/** A job to enqueue together with the episode. */
export interface NewJob {
  readonly kind: JobKind
  readonly payload?: Attributes
  readonly notBefore?: Instant
}

/** Everything known about an episode when it is stored. */
export interface Enrichment {
  readonly docs: readonly NewDoc[]
  readonly entities: readonly NewEntity[]
  readonly facts: readonly NewFact[]
  readonly jobs?: readonly NewJob[]
}
