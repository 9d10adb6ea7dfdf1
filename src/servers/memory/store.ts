import { SqlError, type SqlFailure } from '../../stores/sql.ts'
import type { QueryTerm } from '../../text/query.ts'
import type { Entity, Episode, EpisodeState, Fact, Instant, JobState } from './model.ts'
import type { createMemoryStore } from './store/memory-store.ts'

/** The groups that a query covers; `all` is every group of the tenant. */
export type Groups = readonly string[] | 'all'

/** The columns of the full-text index of each kind of row. */
export const INDEX_COLUMNS = {
  doc: ['text', 'actor', 'prev', 'next', 'dt'],
  fact: ['fact', 'ents', 'dt'],
  entity: ['name', 'aliases', 'summary'],
} as const

/** The kinds of rows that have a full-text index. */
export type IndexKind = keyof typeof INDEX_COLUMNS

/** The weight of each column of an index, as BM25 uses it. */
export type ColumnWeights<Kind extends IndexKind> = Readonly<Record<(typeof INDEX_COLUMNS)[Kind][number], number>>

/** A full-text query: rows with any of the terms, the best first. */
export interface TextQuery<Kind extends IndexKind = IndexKind> {
  readonly terms: readonly QueryTerm[]
  readonly groups: Groups
  readonly limit: number
  readonly weights: ColumnWeights<Kind>
}

/** A row with its score; greater is better, and scores of different queries cannot be compared. */
export type Hit<Row> = Row & { readonly score: number }

/** Conditions on facts; bounds are inclusive. */
export interface FactFilter {
  readonly names?: readonly string[]
  readonly validAfter?: Instant
  readonly validBefore?: Instant
  readonly invalidAfter?: Instant
  readonly invalidBefore?: Instant
  readonly asOf?: Instant // valid then
}

/** A step along a fact from one entity to another. */
export interface Step {
  readonly from: number
  readonly to: number
  readonly factId: number
}

/** The rows that have embeddings. */
export type VectorKind = 'doc' | 'fact' | 'entity'

/** An embedding to store. */
export interface NewVector {
  readonly kind: VectorKind
  readonly rowId: number
  readonly model: string
  readonly vector: Float32Array
}

/** A row without an embedding of a model, with the text to embed. */
export interface Unembedded {
  readonly rowId: number
  readonly group: string
  readonly text: string
}

/** The result of `add`. */
export interface Added {
  readonly episode: Episode
  /** `same`: the episode was stored already and stays as it is; only the facts stated beside it are added. */
  readonly outcome: 'created' | 'replaced' | 'same'
  readonly entities: readonly Entity[]
  /** One for each fact given, in that order. */
  readonly facts: readonly Fact[]
  /** Facts that were closed by the new ones. */
  readonly closed: readonly string[]
}

/** A worker's claim on a job while it runs. */
export interface Lease {
  readonly job: number
  readonly owner: string
}

/** What to forget. A subject is every entity of that name or alias, and every text that names it. */
export type Forget =
  | { readonly kind: 'group'; readonly group: string }
  | { readonly kind: 'entity'; readonly uuid: string }
  | { readonly kind: 'subject'; readonly name: string; readonly groups: Groups }

/** What was erased, and the result of searching for it afterwards. */
export interface ForgetProof {
  readonly at: Instant
  readonly erased: {
    readonly episodes: readonly string[]
    readonly entities: readonly string[]
    readonly facts: readonly string[]
    readonly docs: number
    readonly vectors: number
    readonly jobs: number
  }
  /** How many samples of the erased texts were searched for. */
  readonly checked: number
  /** How many of them were found nowhere, apart from texts of other episodes. */
  readonly gone: number
  /** The files, or tables, that were searched. */
  readonly files: readonly string[]
  /** Whether no byte of the erased texts is left. */
  readonly clean: boolean
}

/** What `forget` would erase. The text is the name of an episode or entity, or the fact. */
export interface ForgetPreview {
  readonly episodes: readonly PreviewedRow[]
  readonly entities: readonly PreviewedRow[]
  readonly facts: readonly PreviewedRow[]
}

export interface PreviewedRow {
  readonly uuid: string
  readonly text: string
  readonly isNamed: boolean // it is what was asked for, or about it; others go because nothing else mentions them
}

/** An entity and how many facts are about it. */
export type CountedEntity = Entity & { readonly facts: number }

/** Counts of one group. */
export interface GroupStats {
  readonly group: string
  readonly episodes: number
  readonly entities: number
  readonly facts: number
  readonly expired: number
}

/** Counts of a whole store. */
export interface StoreStats {
  readonly driver: string
  readonly version: number
  readonly bytes: number
  readonly groups: readonly GroupStats[]
  readonly docs: number
  readonly sagas: number
  readonly communities: number
  readonly vectors: number
  readonly jobs: Readonly<Record<JobState, number>>
  readonly firstAt: Instant | undefined
  readonly lastAt: Instant | undefined
}

/** An entry of the audit log: what happened to which ids, never their texts. */
export interface AuditRow {
  readonly at: Instant
  readonly actor: string | undefined
  readonly op: string
  readonly ids: readonly string[]
}

/** A change, of which resource subscribers are notified. */
export interface StoreChange {
  readonly kind: 'episode' | 'entity' | 'fact' | 'saga' | 'community' | 'job'
  readonly op: 'put' | 'delete'
  readonly group: string
  readonly uuids: readonly string[]
}

/** How many lines an import stored. */
export interface Imported {
  readonly episodes: number
  readonly entities: number
  readonly facts: number
  readonly sagas: number
  readonly communities: number
  /** Lines that were stored already. */
  readonly same: number
}

/** Episodes to list; by default the newest event first. */
export interface EpisodeQuery {
  readonly groups: Groups
  readonly limit: number
  readonly saga?: string
  readonly state?: EpisodeState
  readonly order?: 'newest' | 'oldest' | 'arrival'
  /** Continue after this row id (order `arrival`). */
  readonly after?: number
  /** Stop after the first episode with which the bodies exceed this many bytes. */
  readonly mostBytes?: number
}

/** Jobs to list, oldest first. */
export interface JobQuery {
  readonly groups: Groups
  readonly limit: number
  readonly states?: readonly JobState[]
}

/** Why a store rejected a call; the message says what to do. */
export type StoreFailure =
  | 'invalid' // the input contradicts itself or names rows that do not exist
  | 'missing' // the row does not exist
  | 'full' // no space on the disk
  | 'busy' // another process held a lock for too long
  | 'damaged' // the file is truncated or corrupt
  | 'foreign' // the file is of another program, or of a newer version
  | 'closed'

/** An error with its kind; any other error is a bug. */
export class StoreError extends Error {
  readonly kind: StoreFailure
  constructor(kind: StoreFailure, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreError'
    this.kind = kind
  }
}

/** What each failure of a database means for a memory: the kind of error, and what to do. */
export type ExplainedFailures = Readonly<Partial<Record<SqlFailure, readonly [StoreFailure, string]>>>

/** An error of a database as a StoreError that says what to do; any other error unchanged. `what` names the database. */
export const explainSqlError = (error: unknown, what: string, failures: ExplainedFailures): unknown => {
  const known = error instanceof SqlError ? failures[error.kind] : undefined
  if (!known || !(error instanceof SqlError)) return error
  return new StoreError(known[0], `${what} ${known[1]} (${error.message}).`, { cause: error })
}

/** An entity or fact to store is invalid: it has no name, contradicts itself or another, or names facts that do not exist. */
export class StatementError extends StoreError {
  constructor(message: string) {
    super('invalid', message)
  }
}

/** The caller of a write, for the audit log. */
export interface By {
  readonly actor?: string | undefined
}

/** One tenant's memory, on any engine. Every write is one transaction, durable when it resolves. */
export type MemoryStore = ReturnType<typeof createMemoryStore>

/** The stores of all tenants; the number of open ones is bounded. */
export interface MemoryStores {
  /** Runs `use` with the tenant's store, which is opened if needed and stays open meanwhile. */
  with<Result>(tenant: string, use: (store: MemoryStore) => Promise<Result>): Promise<Result>
  tenants(): Promise<readonly string[]>
  close(): Promise<void>
}
