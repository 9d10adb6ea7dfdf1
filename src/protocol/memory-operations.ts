import type {
  EntityDetails,
  EpisodeDetails,
  ForgetPlan,
  ForgetRequest,
  ForgetResult,
  ImportSummary,
  MemoryGraph,
  MemoryJob,
  MemorySearch,
  MemoryStats,
  MemoryTimeline,
} from './memory-views.ts'

/** Which part of a memory is meant. */
export interface MemoryScope {
  readonly group?: string | undefined // undefined: all
  readonly asOf?: string | undefined // ISO 8601: what was true then
}

export interface TimelineQuery extends MemoryScope {
  readonly kind?: 'episode' | 'fact' | undefined // undefined: both
  readonly after?: string | undefined // `next` of the page before
  readonly limit: number
}

export interface NewMemory {
  readonly text: string
  readonly name?: string | undefined
  readonly source?: 'text' | 'message' | 'json' | undefined
  readonly at?: string | undefined // ISO 8601; now if undefined
  readonly group?: string | undefined
}

export interface EntityChange {
  readonly name?: string | undefined
  readonly summary?: string | undefined
  readonly labels?: readonly string[] | undefined
}

/** Dates are ISO 8601; null removes one. */
export interface FactChange {
  readonly text?: string | undefined
  readonly relation?: string | undefined
  readonly validFrom?: string | null | undefined
  readonly validUntil?: string | null | undefined
}

export interface MemoryUpload {
  readonly name: string // of the file
  readonly modified?: number | undefined
  readonly format?: string | undefined // undefined: detected
  readonly group?: string | undefined
  readonly content: ReadableStream<Uint8Array>
}

/** What a memory server does for the admin API. The first argument is the tenant, whose memory it is. */
export interface MemoryOperations {
  /** The tenants that have stored something. */
  tenants(): Promise<readonly string[]>
  stats(tenant: string): Promise<MemoryStats>
  search(tenant: string, query: string, scope: MemoryScope, limit: number): Promise<MemorySearch>
  timeline(tenant: string, query: TimelineQuery): Promise<MemoryTimeline>
  episode(tenant: string, id: string): Promise<EpisodeDetails>
  entity(tenant: string, id: string, scope: MemoryScope): Promise<EntityDetails>
  graph(tenant: string, scope: MemoryScope, limit: number): Promise<MemoryGraph>
  jobs(tenant: string): Promise<readonly MemoryJob[]>
  /** Lines of an export. */
  exported(tenant: string, scope: MemoryScope): Promise<ReadableStream<Uint8Array>>
  add(tenant: string, memory: NewMemory): Promise<EpisodeDetails>
  changeEntity(tenant: string, id: string, change: EntityChange): Promise<EntityDetails>
  changeFact(tenant: string, id: string, change: FactChange): Promise<void>
  deleteFact(tenant: string, id: string): Promise<void>
  deleteEpisode(tenant: string, id: string): Promise<void>
  planForget(tenant: string, request: ForgetRequest): Promise<ForgetPlan>
  forget(tenant: string, request: ForgetRequest): Promise<ForgetResult>
  imported(tenant: string, upload: MemoryUpload): Promise<ImportSummary>
  /** Retries one failed job, or all; returns how many there were. */
  retry(tenant: string, job: number | 'all'): Promise<number>
}
