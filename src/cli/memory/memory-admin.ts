/** What was kept, in the words of the tools: `uuid`, `group_id`, `valid_at` and so on. */
export type Shown = Readonly<Record<string, unknown>>

/** Groups by name, or every group. */
export type Groups = readonly string[] | 'all'

/** Which memory is meant, and where it rests. */
export interface MemoryPlace {
  readonly folder: string
  readonly database?: string | undefined
  readonly tenant: string
  readonly group: string // of what names none
  readonly extracts: boolean
  readonly embeds: boolean
}

/** What an import did. */
export interface ImportReport {
  readonly format: string
  readonly created: number
  readonly replaced: number
  readonly removed: number
  readonly same: number
  readonly entities: number
  readonly facts: number
  readonly passedOver: number
  readonly faults: readonly { readonly where: string; readonly why: string }[]
  readonly faulty: number
  readonly isInterrupted: boolean
}

/** What was erased, and that it is gone. */
export interface Proof {
  readonly erased: {
    readonly episodes: readonly string[]
    readonly entities: readonly string[]
    readonly facts: readonly string[]
  }
  readonly checked: number
  readonly gone: number
  readonly clean: boolean
}

/** A memory at a glance. */
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
  readonly docs: number
  readonly vectors: number
  readonly jobs: { readonly waiting: number; readonly leased: number; readonly failed: number }
  readonly firstAt: number | undefined
  readonly lastAt: number | undefined
}

/** What is to be forgotten. */
export type Forget =
  | { readonly kind: 'group'; readonly group: string }
  | { readonly kind: 'entity'; readonly uuid: string }
  | { readonly kind: 'subject'; readonly name: string; readonly groups: Groups }

/** One memory, worked on directly. */
export interface MemoryAdmin {
  tenants(): Promise<readonly string[]>
  add(note: {
    readonly text: string
    readonly name?: string | undefined
    readonly group?: string | undefined
    readonly source: string
    readonly at?: string | undefined
    readonly saga?: string | undefined
  }): Promise<Shown>
  passages(query: string, groups: Groups, limit: number): Promise<readonly Shown[]>
  facts(query: string, groups: Groups, limit: number): Promise<readonly Shown[]>
  episodes(groups: Groups, limit: number): Promise<readonly Shown[]>
  exportTo(groups: Groups, write: (line: string) => Promise<void>): Promise<void>
  importFrom(what: {
    readonly source: { readonly path: string } | { readonly stream: AsyncIterable<Uint8Array> }
    readonly format: string | undefined
    readonly given: string | undefined
    readonly progress: (done: number) => void
    readonly signal?: AbortSignal | undefined
  }): Promise<ImportReport>
  backup(path: string): Promise<{ readonly bytes: number }>
  forget(what: Forget): Promise<Proof>
  stats(): Promise<MemoryStats>
  jobs(groups: Groups, limit: number): Promise<readonly Shown[]>
  retry(job: number | 'all'): Promise<number>
  close(): Promise<void>
}

/** Opens one memory; it is handed in because the command line does not know how memory works. */
export type OpenMemory = (place: MemoryPlace) => Promise<MemoryAdmin>
