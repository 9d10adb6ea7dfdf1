/** What a record describes; part of its key. */
export type RecordKind =
  | 'session'
  | 'server-session'
  | 'transient-server-session' // one that only its home can use
  | 'pool'
  | 'task'
  | 'task-list' // the tasks of one replica, for the others
  | 'started-tasks' // of one user at one server, which the server runs
  | 'origin'
  | 'oauth-client'
  | 'grant'
  | 'login'
  | 'token'

const HOMELESS: ReadonlySet<RecordKind> = new Set(['started-tasks', 'oauth-client', 'grant', 'login', 'token'])

/** Whether records of a kind have no live end: any replica may take them at any time, and ends the claim before. */
export const isHomeless = (kind: RecordKind): boolean => HOMELESS.has(kind)

/** The right to write a record. The epoch grows with each new home, so a write of an earlier home changes nothing. */
export interface Claim {
  readonly kind: RecordKind
  readonly id: string
  readonly epoch: number
}

/** A record that this replica has claimed, or has read. */
export interface Held extends Claim {
  readonly body: Buffer
}

export type TakeResult =
  | { readonly kind: 'mine'; readonly held: Held }
  | { readonly kind: 'other'; readonly home: string }
  | { readonly kind: 'none' }

export interface WriteOptions {
  /** The time, as Date.now() counts it, after which the record is no longer found and may be swept; Infinity: never. */
  readonly expires: number
  /** Survives a power cut. It also fails while the store is away, instead of being written later. */
  readonly durable?: boolean
}

/** Where state is kept. A settled promise means it is stored, or queued while the store is away. */
export interface StateStore {
  /** Rejects with a StateError: `exists` if the id is in use, `limit` if the body is too large. */
  create(kind: RecordKind, id: string, body: Buffer, options: WriteOptions): Promise<Claim>
  /** Reads a record without claiming it, wherever its home is. */
  read(kind: RecordKind, id: string): Promise<Held | undefined>
  /** Reads records of a kind that has no homes, in no order and without claiming them; not more than `limit`. */
  list(kind: RecordKind, limit: number): Promise<Held[]>
  /** Claims a record, unless another live replica holds it. A record of this replica keeps its epoch. */
  take(kind: RecordKind, id: string): Promise<TakeResult>
  /** Returns false if another replica holds the record now, or if it was removed. */
  write(claim: Claim, body: Buffer, options: WriteOptions): Promise<boolean>
  /** Removes the record with its journal and inbox; does nothing if another replica holds it now. */
  remove(claim: Claim): Promise<void>
  /**
   * Claims records that no other live replica holds, not more than `limit`: `expired` ones, or `orphaned` ones of ended
   * replicas. Only one replica gets each; it removes the expired ones.
   */
  takeAbandoned(kind: RecordKind, why: 'expired' | 'orphaned', limit: number): Promise<Held[]>
  /** For a planned stop: other replicas may take the records of this one at once. */
  releaseAll(): Promise<void>
  /**
   * Called when this replica no longer holds a record: drop its live end, without ending sessions at servers.
   * After a missed lease it is called for each record that this replica had created or taken.
   */
  onLost(listener: (claim: Claim) => void): () => void
  health(): StoreHealth
  /** Whether other replicas may use it, now or later. */
  readonly isShared: boolean
  readonly journal: Journal
  readonly inbox: Inbox
  readonly members: Membership
  readonly shared: Shared
  close(): Promise<void>
}

/** The stored copies of the events of streams, written behind: an event is stored within one batch. */
export interface Journal {
  /**
   * Adds an event, given in pieces, or replaces the one that is stored under its number. The pieces must not change. A
   * promise is backpressure: wait for it before sending more.
   * Events beyond the limits are not stored, or push out the oldest ones of their stream; the reader sees a gap.
   */
  append(claim: Claim, stream: string, seq: number, pieces: readonly Buffer[]): undefined | Promise<void>
  /** Events after `after` in order, at most `limit` and about a mebibyte; an empty list means that there are no more. */
  read(claim: Claim, stream: string, after: number, limit: number): Promise<JournalEvent[]>
  drop(claim: Claim, stream: string): void
}

export interface JournalEvent {
  readonly seq: number
  readonly data: Buffer
}

/** Messages for the home of a record, from any replica. */
export interface Inbox {
  /** Also notifies `inboxTopic(kind, id)`. */
  put(kind: RecordKind, id: string, data: Buffer): Promise<void>
  /** Returns and removes the messages, oldest first; none if another replica holds the record now. */
  drain(claim: Claim): Promise<Buffer[]>
}

export const inboxTopic = (kind: RecordKind, id: string): string => `inbox:${kind}:${id}`

/** What a replica tells the others about itself. */
export interface ReplicaAbout {
  /** The URL at which other replicas reach it; empty if they cannot. */
  readonly address: string
  readonly labels: readonly string[]
}

export interface Replica extends ReplicaAbout {
  readonly replica: string
  /** The format of the records it writes. */
  readonly version: number
}

/** The live replicas, as of the last heartbeat. */
export interface Membership {
  /** The name of this replica: new at each start, and after a missed lease. */
  readonly self: string
  at(replica: string): Replica | undefined
  /** Every live replica, this one too. */
  all(): readonly Replica[]
  /** Changes what the others know of this replica, for example when its port is open. */
  announce(about: ReplicaAbout): Promise<void>
  /** Ends the lease of a replica that refused a connection, so that its records can be taken. */
  reportDead(replica: string): Promise<void>
  onLeft(listener: (replica: string) => void): () => void
  /** Called after this replica missed its lease and joined again under a new name; `onLost` was called before. */
  onRenamed(listener: (name: string) => void): () => void
}

/** Values that belong to all replicas. */
export interface Shared {
  /** Adds to the counters of a window, given by its start in milliseconds, and returns their sums over all replicas. */
  count(window: number, spent: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>>
  document(name: string): Promise<SharedDocument | undefined>
  /** Writes a document if its version is still `version` (0: there is none), and notifies the topic of its name. */
  writeDocument(name: string, body: Buffer, version: number): Promise<boolean>
  /** Wakes the listeners of a topic on every replica, this one too. */
  notify(topic: string): void
  /** The listener is also called without cause, every few seconds: notifications can be missed. */
  on(topic: string, listener: () => void): () => void
}

export interface SharedDocument {
  readonly version: number
  readonly body: Buffer
}

/** How the store is; `/readyz` and `/metrics` show it. */
export interface StoreHealth {
  readonly engine: 'memory' | 'sqlite' | 'postgres'
  /** `away`: writes are queued. `memory-only`: the database cannot be used, nothing survives a restart. */
  readonly state: 'ok' | 'away' | 'memory-only'
  /** Why the state is not `ok`. */
  readonly reason?: string | undefined
  /** Records that this replica holds. */
  readonly claims: number
  readonly journalBytes: number
  readonly queuedBytes: number
}

/** Why a store rejected an operation. */
export class StateError extends Error {
  readonly reason: 'exists' | 'limit' | 'away'

  constructor(reason: 'exists' | 'limit' | 'away', message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StateError'
    this.reason = reason
  }
}
