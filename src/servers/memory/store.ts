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

/** The groups a question is about; `all` is every group of this tenant. */
export type Groups = readonly string[] | 'all'

/** Column weights of a full-text question, in BM25's sense. */
export interface DocWeights {
  readonly text: number
  readonly actor: number
  readonly prev: number
  readonly next: number
  readonly dt: number
}

/** Column weights over facts that were given rather than read from a passage. */
export interface FactWeights {
  readonly fact: number
  readonly ents: number
  readonly dt: number
}

/** Column weights over entities. */
export interface EntityWeights {
  readonly name: number
  readonly aliases: number
  readonly summary: number
}

/** One full-text question: rows with any of the terms, the best first. */
export interface TextQuery<Weights> {
  readonly terms: readonly QueryTerm[]
  readonly groups: Groups
  readonly limit: number
  readonly weights: Weights
}

/** A row with the score its list gave it; greater is better, comparable within one answer only. */
export type Hit<Row> = Row & { readonly score: number }

/** Which facts a caller wants at all; bounds are inclusive. */
export interface FactFilter {
  readonly names?: readonly string[]
  readonly validAfter?: Instant
  readonly validBefore?: Instant
  readonly invalidAfter?: Instant
  readonly invalidBefore?: Instant
}

/** One step along a fact between two entities. */
export interface Step {
  readonly from: number
  readonly to: number
  readonly factId: number
}

/** What embeddings are of. */
export type VectorKind = 'doc' | 'fact' | 'entity'

/** One embedding to keep. */
export interface NewVector {
  readonly kind: VectorKind
  readonly rowId: number
  readonly model: string
  readonly vector: Float32Array
}

/** A row without an embedding of the wanted model, with the text to embed. */
export interface Unembedded {
  readonly rowId: number
  readonly group: string
  readonly text: string
}

/** What `add` did. */
export interface Added {
  readonly episode: Episode
  /** `same`: this very episode was there already and stays as it is; only what is stated beside it is added. */
  readonly outcome: 'created' | 'replaced' | 'same'
  readonly entities: readonly Entity[]
  readonly facts: readonly Fact[]
  /** Facts that were closed by the new ones. */
  readonly closed: readonly string[]
}

/** What a worker holds while it does a job. */
export interface Lease {
  readonly job: number
  readonly owner: string
}

/** What is to be forgotten. A subject is every entity of that name or alias, and whatever names it in its text. */
export type Forget =
  | { readonly kind: 'group'; readonly group: string }
  | { readonly kind: 'entity'; readonly uuid: string }
  | { readonly kind: 'subject'; readonly name: string; readonly groups: Groups }

/** What was erased, and that it is gone. */
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
  /** Distinct words and phrases looked for as bytes in every file of the store afterwards. */
  readonly checked: number
  /** How many of them were found nowhere; those still found elsewhere are other episodes' own words. */
  readonly gone: number
  /** Looked for in these files. */
  readonly files: readonly string[]
  /** True when no erased text is left as bytes. */
  readonly clean: boolean
}

/** Counts of one group. */
export interface GroupStats {
  readonly group: string
  readonly episodes: number
  readonly entities: number
  readonly facts: number
  readonly expired: number
}

/** The store at a glance. */
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

/** A line of the audit trail; it says what happened to which ids, never what they said. */
export interface AuditRow {
  readonly at: Instant
  readonly actor: string | undefined
  readonly op: string
  readonly ids: readonly string[]
}

/** Something changed; resource subscribers are told. */
export interface Change {
  readonly kind: 'episode' | 'entity' | 'fact' | 'saga' | 'community' | 'job'
  readonly op: 'put' | 'delete'
  readonly group: string
  readonly uuids: readonly string[]
}

/** What an import did, line by line. */
export interface Imported {
  readonly episodes: number
  readonly entities: number
  readonly facts: number
  readonly sagas: number
  readonly communities: number
  /** Lines that were there already. */
  readonly same: number
}

/** Episodes to list; newest event first unless asked otherwise. */
export interface EpisodeQuery {
  readonly groups: Groups
  readonly limit: number
  readonly saga?: string
  readonly state?: EpisodeState
  readonly order?: 'newest' | 'oldest' | 'arrival'
  /** Continue after this row id (order `arrival`). */
  readonly after?: number
  /** No more than these bodies hold, one beyond at most; a store may give more. */
  readonly mostBytes?: number
}

/** Jobs to list, oldest first. */
export interface JobQuery {
  readonly groups: Groups
  readonly limit: number
  readonly states?: readonly JobState[]
}

/** Why a store refused; the message says what to do. */
export type StoreFailure =
  | 'invalid' // the input contradicts itself or names what is not there
  | 'missing' // the row asked for does not exist
  | 'full' // no room on disk
  | 'busy' // another process held the file too long
  | 'damaged' // the file is truncated or corrupt
  | 'foreign' // the file is not ours, or of a newer version
  | 'closed'

/** A refusal with its kind; everything else that is thrown is a bug. */
export class StoreError extends Error {
  readonly kind: StoreFailure
  constructor(kind: StoreFailure, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreError'
    this.kind = kind
  }
}

/** Who asks for a write, for the audit trail. */
export interface By {
  readonly actor?: string | undefined
}

/** Full text, vectors and the graph: the rows that search fuses and ranks. */
export interface SearchStore {
  searchDocs(query: TextQuery<DocWeights>): Promise<readonly Hit<Doc>[]>
  /** Facts found by their own text: those an agent, a model or a triplet gave. A rule fact quotes its passage and is found through `searchDocs` and `factsOfDocs`. */
  searchFacts(query: TextQuery<FactWeights>, filter?: FactFilter): Promise<readonly Hit<Fact>[]>
  searchEntities(query: TextQuery<EntityWeights>): Promise<readonly Hit<Entity>[]>
  docs(ids: readonly number[]): Promise<readonly Doc[]>
  docsOfEpisodes(episodes: readonly string[]): Promise<readonly Doc[]>
  factsOfDocs(ids: readonly number[], filter?: FactFilter): Promise<readonly Fact[]>
  factsOfEntities(ids: readonly number[], limit: number, filter?: FactFilter): Promise<readonly Fact[]>
  /** Facts by time alone, latest first, for a question that is only a date range. */
  factsByTime(groups: Groups, limit: number, filter: FactFilter): Promise<readonly Fact[]>
  /** Entities by normalised name or alias; `norm` is the one that matched. */
  entitiesNamed(norms: readonly string[], groups: Groups): Promise<readonly (Entity & { readonly norm: string })[]>
  aliasesOf(ids: readonly number[]): Promise<readonly { readonly entityId: number; readonly norm: string }[]>
  /** Entities the given passages' episodes mention. */
  entitiesOfEpisodes(episodeIds: readonly number[]): Promise<readonly (Entity & { readonly episodeId: number })[]>
  /** Steps out of these entities along facts, in both directions, at most `limit`. */
  neighbours(ids: readonly number[], limit: number): Promise<readonly Step[]>
  putVectors(vectors: readonly NewVector[]): Promise<void>
  nearest(query: {
    readonly kind: VectorKind
    readonly model: string
    readonly vector: Float32Array
    readonly groups: Groups
    readonly limit: number
  }): Promise<readonly { readonly rowId: number; readonly score: number }[]>
  /** Rows without an embedding of this model, of those named or of all, oldest first. */
  unembedded(kind: VectorKind, model: string, limit: number, among?: readonly number[]): Promise<readonly Unembedded[]>
  /** Drops embeddings of every other model; returns how many. */
  dropVectorsExcept(model: string): Promise<number>
}

/** Reading single things and lists. */
export interface ReadStore {
  episode(uuid: string): Promise<Episode | undefined>
  episodes(query: EpisodeQuery): Promise<readonly Episode[]>
  episodesByUuid(uuids: readonly string[]): Promise<readonly Episode[]>
  entity(uuid: string): Promise<Entity | undefined>
  entitiesById(ids: readonly number[]): Promise<readonly Entity[]>
  entities(groups: Groups, limit: number, after?: number): Promise<readonly Entity[]>
  fact(uuid: string): Promise<Fact | undefined>
  factsById(ids: readonly number[]): Promise<readonly Fact[]>
  facts(groups: Groups, limit: number, after?: number): Promise<readonly Fact[]>
  /** The entities and facts that came from these episodes. */
  episodeGraph(
    uuids: readonly string[],
  ): Promise<{ readonly entities: readonly Entity[]; readonly facts: readonly Fact[] }>
  saga(group: string, name: string): Promise<Saga | undefined>
  sagas(groups: Groups): Promise<readonly Saga[]>
  communities(groups: Groups): Promise<readonly Community[]>
  /** Every fact that holds as a pair of entity ids, for label propagation. */
  links(groups: Groups): Promise<readonly { readonly group: string; readonly from: number; readonly to: number }[]>
  groups(): Promise<readonly string[]>
  stats(): Promise<StoreStats>
  audit(limit: number): Promise<readonly AuditRow[]>
}

/** Writing; every call is one transaction, durable when it resolves. */
export interface WriteStore {
  /** The episode with all its passages, entities, facts, index rows and jobs, or nothing. */
  add(episode: NewEpisode, enrichment: Enrichment, by?: By): Promise<Added>
  /** More knowledge for an episode that is stored, and the end of the job that found it. Refused when the lease was lost. */
  enrich(episode: string, found: Omit<Enrichment, 'docs'>, lease?: Lease): Promise<Added>
  /** Entities and facts that no episode told. */
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
  setSagaSummary(group: string, name: string, summary: string, summarisedTo: number): Promise<Saga>
  replaceCommunities(
    groups: Groups,
    found: readonly Pick<Community, 'group' | 'name' | 'summary' | 'members'>[],
  ): Promise<readonly Community[]>
}

/** Durable background work: leased, retried, in order within a group. */
export interface JobStore {
  enqueue(group: string, job: NewJob, episode?: string): Promise<Job>
  /** The oldest job that is due, of a group in which no older job of its kind is unfinished; undefined when there is none. */
  lease(owner: string, kinds: readonly JobKind[], leaseMs: number): Promise<Job | undefined>
  renew(lease: Lease, leaseMs: number): Promise<boolean>
  finish(lease: Lease): Promise<boolean>
  /** Back to waiting until `retryAt`, or given up without one; `counts` is false when the job itself was not to blame. */
  fail(lease: Lease, error: string, retryAt?: Instant, counts?: boolean): Promise<boolean>
  /** A job that was given up waits again. */
  retry(job: number): Promise<boolean>
  jobs(query: JobQuery): Promise<readonly Job[]>
  /** When the next job that no older one holds up is due. */
  nextDue(kinds: readonly JobKind[]): Promise<Instant | undefined>
}

/** Whole-store work. */
export interface KeepStore {
  /** A consistent copy beside the running store, put in place by a rename. */
  backup(path: string): Promise<{ readonly bytes: number }>
  /** Everything as JSON lines in a stable order, a versioned header first. */
  exportLines(groups: Groups): AsyncIterable<string>
  /** Reads what `exportLines` wrote; what is there already stays as it is. */
  importLines(lines: AsyncIterable<string> | Iterable<string>, by?: By): Promise<Imported>
  /** Changes what the store keeps for background work under a key, as JSON and in one step; returns what is then there. */
  amend(key: string, change: (known: unknown) => unknown): Promise<unknown>
  onChange(listener: (change: Change) => void): () => void
  close(): Promise<void>
}

/** One tenant's memory. Everything above it is written against this, whichever database is below. */
export type MemoryStore = SearchStore & ReadStore & WriteStore & JobStore & KeepStore

/** Gives each tenant its own store and keeps the number of open ones bounded. */
export interface MemoryStores {
  /** Runs `use` with the tenant's store, opened when needed and not closed meanwhile. */
  with<Result>(tenant: string, use: (store: MemoryStore) => Promise<Result>): Promise<Result>
  tenants(): Promise<readonly string[]>
  close(): Promise<void>
}
