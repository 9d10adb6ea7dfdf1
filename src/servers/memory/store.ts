import type {
  Attributes,
  Community,
  Doc,
  Enrichment,
  Entity,
  Episode,
  EpisodeState,
  Fact,
  Instant,
  Job,
  JobKind,
  JobState,
  NewEpisode,
  NewJob,
  Saga,
} from './model.ts'
import type { QueryTerm } from './text/query.ts'

/** The groups that a query covers; `all` is every group of the tenant. */
export type Groups = readonly string[] | 'all'

/** Column weights of a full-text query over passages, as BM25 uses them. */
export interface DocWeights {
  readonly text: number
  readonly actor: number
  readonly prev: number
  readonly next: number
  readonly dt: number
}

/** Column weights of a full-text query over facts. */
export interface FactWeights {
  readonly fact: number
  readonly ents: number
  readonly dt: number
}

/** Column weights of a full-text query over entities. */
export interface EntityWeights {
  readonly name: number
  readonly aliases: number
  readonly summary: number
}

/** A full-text query: rows with any of the terms, the best first. */
export interface TextQuery<Weights> {
  readonly terms: readonly QueryTerm[]
  readonly groups: Groups
  readonly limit: number
  readonly weights: Weights
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

/** Full-text search, vectors and the graph: the rows that search fuses and ranks. */
export interface SearchStore {
  searchDocs(query: TextQuery<DocWeights>): Promise<readonly Hit<Doc>[]>
  /** Facts of an agent, a model or a triplet by their own text. A rule's fact quotes its passage and is found through `searchDocs` and `factsOfDocs`. */
  searchFacts(query: TextQuery<FactWeights>, filter?: FactFilter): Promise<readonly Hit<Fact>[]>
  searchEntities(query: TextQuery<EntityWeights>): Promise<readonly Hit<Entity>[]>
  docs(ids: readonly number[]): Promise<readonly Doc[]>
  docsOfEpisodes(episodes: readonly string[]): Promise<readonly Doc[]>
  factsOfDocs(ids: readonly number[], filter?: FactFilter): Promise<readonly Fact[]>
  factsOfEntities(ids: readonly number[], limit: number, filter?: FactFilter): Promise<readonly Fact[]>
  /** Facts by time alone, latest first, for a query that is only a date range. */
  factsByTime(groups: Groups, limit: number, filter: FactFilter): Promise<readonly Fact[]>
  /** Entities by normalised name or alias; `norm` is the name that matched. */
  entitiesNamed(norms: readonly string[], groups: Groups): Promise<readonly (Entity & { readonly norm: string })[]>
  aliasesOf(ids: readonly number[]): Promise<readonly { readonly entityId: number; readonly norm: string }[]>
  /** Entities that these episodes mention. */
  entitiesOfEpisodes(episodeIds: readonly number[]): Promise<readonly (Entity & { readonly episodeId: number })[]>
  /** Steps from these entities along facts, in both directions. */
  neighbours(ids: readonly number[], limit: number): Promise<readonly Step[]>
  putVectors(vectors: readonly NewVector[]): Promise<void>
  nearest(query: {
    readonly kind: VectorKind
    readonly model: string
    readonly vector: Float32Array
    readonly groups: Groups
    readonly limit: number
  }): Promise<readonly { readonly rowId: number; readonly score: number }[]>
  /** Rows without an embedding of this model, among those named or all, oldest first. */
  unembedded(kind: VectorKind, model: string, limit: number, among?: readonly number[]): Promise<readonly Unembedded[]>
  /** Drops the embeddings of every other model; returns how many. */
  dropVectorsExcept(model: string): Promise<number>
}

/** Reading single rows and lists. */
export interface ReadStore {
  episode(uuid: string): Promise<Episode | undefined>
  episodes(query: EpisodeQuery): Promise<readonly Episode[]>
  episodesByUuid(uuids: readonly string[]): Promise<readonly Episode[]>
  entity(uuid: string): Promise<Entity | undefined>
  entitiesById(ids: readonly number[]): Promise<readonly Entity[]>
  /** Entities with their number of facts, the most first; among those named, or all but the Notes. */
  entities(groups: Groups, limit: number, among?: readonly number[]): Promise<readonly CountedEntity[]>
  fact(uuid: string): Promise<Fact | undefined>
  factsById(ids: readonly number[]): Promise<readonly Fact[]>
  facts(groups: Groups, limit: number, after?: number): Promise<readonly Fact[]>
  /** The entities that these episodes mention and the facts they state. */
  episodeGraph(
    uuids: readonly string[],
  ): Promise<{ readonly entities: readonly Entity[]; readonly facts: readonly Fact[] }>
  saga(group: string, name: string): Promise<Saga | undefined>
  sagas(groups: Groups): Promise<readonly Saga[]>
  communities(groups: Groups): Promise<readonly Community[]>
  /** Every valid fact as a pair of entity ids, for label propagation. */
  links(groups: Groups): Promise<readonly { readonly group: string; readonly from: number; readonly to: number }[]>
  groups(): Promise<readonly string[]>
  stats(): Promise<StoreStats>
  audit(limit: number): Promise<readonly AuditRow[]>
}

/** Writing; every call is one transaction, durable when it resolves. */
export interface WriteStore {
  /** Stores the episode with all its passages, entities, facts, index rows and jobs, or nothing of it. */
  add(episode: NewEpisode, enrichment: Enrichment, by?: By): Promise<Added>
  /** Adds entities and facts to a stored episode, and finishes the job that found them. Rejects if the lease was lost. */
  enrich(episode: string, found: Omit<Enrichment, 'docs'>, lease?: Lease): Promise<Added>
  /** Stores entities and facts without an episode. */
  addFacts(
    group: string,
    found: Pick<Enrichment, 'entities' | 'facts'>,
    by?: By,
  ): Promise<Omit<Added, 'episode' | 'outcome'>>
  setEntity(
    uuid: string,
    change: { readonly summary?: string; readonly labels?: readonly string[]; readonly attributes?: Attributes },
  ): Promise<Entity>
  addAlias(uuid: string, alias: string, by?: By): Promise<void>
  deleteEpisode(uuid: string, by?: By): Promise<void>
  deleteFact(uuid: string, by?: By): Promise<void>
  clear(groups: Groups, by?: By): Promise<void>
  forget(what: Forget, by?: By): Promise<ForgetProof>
  previewForget(what: Forget): Promise<ForgetPreview>
  setSagaSummary(group: string, name: string, summary: string, summarisedTo: number): Promise<Saga>
  replaceCommunities(
    groups: Groups,
    found: readonly Pick<Community, 'group' | 'name' | 'summary' | 'members'>[],
  ): Promise<readonly Community[]>
}

/** Durable background work: leased, retried, in order within a group. */
export interface JobStore {
  enqueue(group: string, job: NewJob, episode?: string): Promise<Job>
  /** The oldest job that is due in a group without an older unfinished job of its kind, or undefined. */
  lease(owner: string, kinds: readonly JobKind[], leaseMs: number): Promise<Job | undefined>
  renew(lease: Lease, leaseMs: number): Promise<boolean>
  finish(lease: Lease): Promise<boolean>
  /** Lets the job wait until `retryAt`, or gives it up without one. `counts` is false if it was not an attempt. */
  fail(lease: Lease, error: string, retryAt?: Instant, counts?: boolean): Promise<boolean>
  /** Lets a job that was given up wait again. */
  retry(job: number): Promise<boolean>
  jobs(query: JobQuery): Promise<readonly Job[]>
  /** When the next job is due that has no older unfinished one before it. */
  nextDue(kinds: readonly JobKind[]): Promise<Instant | undefined>
}

/** Operations on the whole store. */
export interface MaintenanceStore {
  /** Writes a consistent copy while the store is in use; it is complete or not there. */
  backup(path: string): Promise<{ readonly bytes: number }>
  /** Everything as JSON lines in a stable order, a versioned header first. */
  exportLines(groups: Groups): AsyncIterable<string>
  /** Imports the lines of `exportLines`; rows that exist already stay as they are. */
  importLines(lines: AsyncIterable<string> | Iterable<string>, by?: By): Promise<Imported>
  /** Changes the JSON value of a key of the background jobs, atomically; returns the new value. */
  amend(key: string, change: (known: unknown) => unknown): Promise<unknown>
  onChange(listener: (change: StoreChange) => void): () => void
  close(): Promise<void>
}

/** One tenant's memory, on any engine. */
export type MemoryStore = SearchStore & ReadStore & WriteStore & JobStore & MaintenanceStore

/** The stores of all tenants; the number of open ones is bounded. */
export interface MemoryStores {
  /** Runs `use` with the tenant's store, which is opened if needed and stays open meanwhile. */
  with<Result>(tenant: string, use: (store: MemoryStore) => Promise<Result>): Promise<Result>
  tenants(): Promise<readonly string[]>
  close(): Promise<void>
}
