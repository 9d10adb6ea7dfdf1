// What the admin API shows of one memory, and what it lets its owner do. Types only: the memory's thread, the admin API and
// the console share them. Times are Unix times in milliseconds; ids are uuids.

/** An entity as facts and lists name it. */
export interface EntityName {
  readonly id: string
  readonly name: string
}

export interface EntityView extends EntityName {
  readonly group: string
  readonly labels: readonly string[]
  readonly summary: string
  readonly facts: number
}

export type FactOrigin = 'agent' | 'llm' | 'rule' | 'triplet'

export interface FactView {
  readonly id: string
  readonly group: string
  readonly text: string
  readonly relation: string
  readonly source: EntityName
  readonly target: EntityName
  readonly validFrom?: number | undefined // undefined: since ever
  readonly validUntil?: number | undefined // undefined: it still is
  readonly learntAt: number
  readonly retiredAt?: number | undefined
  readonly origin: FactOrigin
  readonly confidence: number // 0 to 1
  readonly supersededBy?: string | undefined // a fact
  readonly episodes: readonly EntityName[] // that state it, the first one first
}

export interface EpisodeView {
  readonly id: string
  readonly group: string
  readonly name: string
  readonly source: string
  readonly description: string
  readonly at: number // when it happened
  readonly storedAt: number
  readonly saga?: string | undefined
  readonly state: 'ready' | 'pending' | 'failed' // of its background jobs
  readonly error?: string | undefined
  readonly text: string // its beginning in lists
  readonly characters: number // of all of it
}

export interface PassageView {
  readonly text: string
  readonly speaker?: string | undefined
  readonly at: number
  readonly group: string
  readonly episode: EntityName
}

/** What a search found, the best first. */
export interface MemorySearch {
  readonly facts: readonly FactView[]
  readonly entities: readonly EntityView[]
  readonly passages: readonly PassageView[]
}

export type TimelineItem =
  | { readonly kind: 'episode'; readonly at: number; readonly episode: EpisodeView }
  | { readonly kind: 'fact'; readonly at: number; readonly fact: FactView }

export interface MemoryTimeline {
  readonly items: readonly TimelineItem[] // newest first
  readonly next?: string | undefined // `after` of the next page
}

export interface EpisodeDetails {
  readonly episode: EpisodeView // with all of its text
  readonly entities: readonly EntityName[]
  readonly facts: readonly FactView[]
}

export interface EntityDetails {
  readonly entity: EntityView
  readonly aliases: readonly string[] // without its name
  readonly attributes: Readonly<Record<string, unknown>>
  readonly learntAt: number
  readonly facts: readonly FactView[] // the latest ones
  readonly neighbours: readonly (EntityName & { readonly facts: number })[] // the most connected first
  readonly episodes: readonly EpisodeView[] // that mention it, the latest ones
  readonly mentions: number // of all episodes
}

export interface GraphNode extends EntityName {
  readonly group: string
  readonly facts: number
  readonly community?: number | undefined // an index of `communities`; undefined: it belongs to none
}

export interface MemoryGraph {
  readonly nodes: readonly GraphNode[] // the most connected first
  readonly links: readonly { readonly source: number; readonly target: number; readonly facts: number }[] // indexes of `nodes`
  readonly communities: readonly string[] // names, the largest first
  readonly total: number // of the entities, shown or not
}

export interface MemoryStats {
  readonly driver: string
  readonly bytes: number
  readonly groups: readonly {
    readonly group: string
    readonly episodes: number
    readonly entities: number
    readonly facts: number
    readonly expired: number
  }[]
  readonly passages: number
  readonly sagas: number
  readonly communities: number
  readonly vectors: number
  readonly jobs: { readonly waiting: number; readonly running: number; readonly failed: number }
  readonly firstAt?: number | undefined
  readonly lastAt?: number | undefined
  readonly changes: readonly MemoryChange[] // the latest ones
}

/** An entry of the memory's audit log: who did what to how many rows. */
export interface MemoryChange {
  readonly at: number
  readonly actor?: string | undefined
  readonly action: string
  readonly ids: number
}

export interface MemoryJob {
  readonly id: number
  readonly kind: string
  readonly state: 'waiting' | 'running' | 'failed'
  readonly group: string
  readonly episode?: string | undefined
  readonly attempts: number
  readonly nextAt: number
  readonly error?: string | undefined
}

/** What is to be forgotten: a whole group, an entity with its facts, or everything that names a subject. */
export type ForgetRequest =
  | { readonly kind: 'group'; readonly group: string }
  | { readonly kind: 'entity'; readonly id: string }
  | { readonly kind: 'subject'; readonly name: string; readonly group?: string | undefined }

type ForgottenRow = { readonly id: string; readonly text: string; readonly isNamed: boolean }

/** What would be erased. `isNamed`: it is what was asked for, or about it; others go because nothing else mentions or states them. */
export interface ForgetPlan {
  readonly episodes: readonly ForgottenRow[]
  readonly entities: readonly ForgottenRow[]
  readonly facts: readonly ForgottenRow[]
}

/** What was erased, and the search for it afterwards. */
export interface ForgetResult {
  readonly episodes: number
  readonly entities: number
  readonly facts: number
  readonly passages: number
  readonly checked: number // pieces of the erased texts that were searched for
  readonly gone: number // of those, found nowhere
  readonly places: readonly string[] // the files or tables that were searched
  readonly isClean: boolean // no byte is left in them
}

export interface ImportSummary {
  readonly format: string
  readonly created: number // episodes
  readonly replaced: number
  readonly removed: number
  readonly same: number
  readonly entities: number
  readonly facts: number
  readonly skipped: number
  readonly faults: readonly { readonly where: string; readonly why: string }[] // the first ones
  readonly faulty: number
}
