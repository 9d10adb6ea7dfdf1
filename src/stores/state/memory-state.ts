import { SteadyClock } from '../../std/steady-clock.ts'
import { checkBody, checkDocument, checkMessage, STATE_LIMITS } from './limits.ts'
import { Listeners, TopicListeners } from './listeners.ts'
import { MemoryJournal } from './memory-journal.ts'
import { MemoryMembers, type OwnMembership } from './memory-members.ts'
import {
  type Claim,
  type Held,
  type Inbox,
  inboxTopic,
  isHomeless,
  type Journal,
  type RecordKind,
  type ReplicaAbout,
  type Shared,
  type SharedDocument,
  StateError,
  type StateStore,
  type StoreHealth,
  type TakeResult,
  type WriteOptions,
} from './state-store.ts'

const JOURNAL_BYTES = 64 * 1024 * 1024 // in memory; a database holds more
const WINDOWS = 100 // of rate counters

interface MemoryRecord {
  readonly kind: RecordKind
  readonly id: string
  home: string | undefined
  epoch: number
  expires: number
  body: Buffer
  readonly inbox: Buffer[]
}

const keyOf = ({ kind, id }: { readonly kind: string; readonly id: string }): string => `${kind}:${id}`
const hasExpired = ({ expires }: MemoryRecord): boolean => expires <= Date.now()
const heldOf = ({ kind, id, epoch, body }: MemoryRecord): Held => ({ kind, id, epoch, body })

/** State in memory that the replicas of one process share: for tests, and for a gateway that stores nothing. */
export class MemoryCluster {
  readonly records = new Map<string, MemoryRecord>()
  readonly journal: MemoryJournal
  readonly members = new MemoryMembers()
  readonly topics = new TopicListeners()
  readonly documents = new Map<string, SharedDocument>()
  readonly rates = new Map<number, Map<string, number>>()

  constructor({ journalBytes = JOURNAL_BYTES }: { readonly journalBytes?: number } = {}) {
    this.journal = new MemoryJournal(journalBytes)
  }

  join(about: ReplicaAbout = { address: '', labels: [] }): StateStore {
    return new MemoryStore(this, about)
  }

  /** Ends a replica as a crash does: it releases nothing and writes nothing any more; others may take its records. */
  kill(replica: string): void {
    this.members.end(replica, 'killed')
  }

  /** Lets the lease of a replica run out, as if it had hung: it joins again under a new name. */
  lapse(replica: string): void {
    this.members.end(replica, 'lapsed')
  }
}

class MemoryStore implements StateStore {
  readonly #cluster: MemoryCluster
  readonly #lost = new Listeners<Claim>()
  readonly #clock = new SteadyClock()
  readonly journal: Journal
  readonly inbox: Inbox
  readonly shared: Shared
  readonly members: OwnMembership
  readonly isShared = true

  constructor(cluster: MemoryCluster, about: ReplicaAbout) {
    this.#cluster = cluster
    const member = cluster.members.join(about, former => this.#drop(former))
    this.members = member
    const { journal, topics } = cluster
    this.journal = {
      append: (claim, stream, seq, pieces) => {
        if (this.#owned(claim)) journal.append(keyOf(claim), stream, seq, pieces)
        return undefined
      },
      read: async (claim, stream, after, limit) => journal.read(keyOf(claim), stream, after, limit),
      drop: (claim, stream) => {
        if (this.#owned(claim)) journal.drop(keyOf(claim), stream)
      },
    }
    this.inbox = {
      put: async (kind, id, data) => {
        checkMessage(data)
        const record = this.#find(kind, id)
        if (!record || !member.isAlive) return
        if (record.inbox.length >= STATE_LIMITS.messages) throw new StateError('limit', 'The inbox is full.')
        record.inbox.push(data)
        topics.call(inboxTopic(kind, id))
      },
      drain: async claim => this.#owned(claim)?.inbox.splice(0) ?? [],
    }
    this.shared = {
      count: async (window, spent) => this.#count(window, spent),
      document: async name => cluster.documents.get(name),
      writeDocument: async (name, body, version) => {
        checkDocument(name, body)
        if ((cluster.documents.get(name)?.version ?? 0) !== version || !member.isAlive) return false
        cluster.documents.set(name, { version: version + 1, body })
        topics.call(name)
        return true
      },
      notify: topic => topics.call(topic),
      on: (topic, listener) => topics.on(topic, listener),
    }
  }

  async create(kind: RecordKind, id: string, body: Buffer, { expires }: WriteOptions): Promise<Claim> {
    checkBody(kind, body)
    const key = keyOf({ kind, id })
    const former = this.#cluster.records.get(key)
    if (former && !hasExpired(former)) throw new StateError('exists', `A record of kind "${kind}" with this id exists.`)
    if (former) this.#delete(key)
    const home = isHomeless(kind) ? undefined : this.members.self
    const record = { kind, id, home, epoch: (former?.epoch ?? 0) + 1, expires, body, inbox: [] }
    this.#cluster.records.set(key, record)
    return { kind, id, epoch: record.epoch }
  }

  async read(kind: RecordKind, id: string): Promise<Held | undefined> {
    const record = this.#find(kind, id)
    return record && heldOf(record)
  }

  async list(kind: RecordKind, limit: number): Promise<Held[]> {
    const found: Held[] = []
    for (const record of this.#cluster.records.values()) {
      if (found.length >= limit) break
      if (record.kind === kind && !hasExpired(record)) found.push(heldOf(record))
    }
    return found
  }

  async take(kind: RecordKind, id: string): Promise<TakeResult> {
    const record = this.#find(kind, id)
    if (!record) return { kind: 'none' }
    const { home } = record
    if (home !== undefined && home !== this.members.self && this.members.at(home)) return { kind: 'other', home }
    return { kind: 'mine', held: this.#claim(record) }
  }

  async write(claim: Claim, body: Buffer, { expires }: WriteOptions): Promise<boolean> {
    checkBody(claim.kind, body)
    const record = this.#owned(claim)
    if (record) Object.assign(record, { body, expires })
    return record !== undefined
  }

  async remove(claim: Claim): Promise<void> {
    if (this.#owned(claim)) this.#delete(keyOf(claim))
  }

  async takeAbandoned(kind: RecordKind, why: 'expired' | 'orphaned', limit: number): Promise<Held[]> {
    if (this.#clock.hasJumped(Date.now()) && why === 'expired') return []
    const isAbandoned = (record: MemoryRecord): boolean => {
      const { home } = record
      const isLive = home !== undefined && this.members.at(home) !== undefined
      return why === 'expired'
        ? hasExpired(record) && (home === this.members.self || !isLive)
        : !hasExpired(record) && !isLive
    }
    const found: Held[] = []
    for (const record of this.#cluster.records.values()) {
      if (found.length >= limit) break
      if (record.kind === kind && isAbandoned(record)) found.push(this.#claim(record))
    }
    return found
  }

  async releaseAll(): Promise<void> {
    this.members.retire()
    for (const record of this.#cluster.records.values()) if (record.home === this.members.self) record.home = undefined
  }

  onLost(listener: (claim: Claim) => void): () => void {
    return this.#lost.add(listener)
  }

  health(): StoreHealth {
    const { records, journal } = this.#cluster
    const { self } = this.members
    return {
      engine: 'memory',
      state: 'ok',
      // Counted when it is read: a session that ends asks for the state alone.
      get claims() {
        let claims = 0
        for (const { home } of records.values()) if (home === self) claims++
        return claims
      },
      journalBytes: journal.bytes,
      queuedBytes: 0,
    }
  }

  async close(): Promise<void> {
    this.#cluster.members.end(this.members.self, 'closed')
  }

  /** The record of a claim that is still valid. */
  #owned(claim: Claim): MemoryRecord | undefined {
    const record = this.#cluster.records.get(keyOf(claim))
    const isOwn = record?.epoch === claim.epoch && (isHomeless(claim.kind) || record.home === this.members.self)
    return isOwn && this.members.at(this.members.self) ? record : undefined
  }

  #find(kind: RecordKind, id: string): MemoryRecord | undefined {
    const record = this.#cluster.records.get(keyOf({ kind, id }))
    return record && !hasExpired(record) ? record : undefined
  }

  #claim(record: MemoryRecord): Held {
    if (record.home !== this.members.self) record.epoch++
    if (!isHomeless(record.kind)) record.home = this.members.self
    return heldOf(record)
  }

  /** Reports what this replica held under its former name. */
  #drop(former: string): void {
    const held = [...this.#cluster.records.values()].filter(({ home }) => home === former)
    for (const { kind, id, epoch } of held) this.#lost.call({ kind, id, epoch })
  }

  #delete(key: string): void {
    this.#cluster.records.delete(key)
    this.#cluster.journal.remove(key)
  }

  #count(window: number, spent: ReadonlyMap<string, number>): Map<string, number> {
    const { rates } = this.#cluster
    const counts = rates.get(window) ?? new Map<string, number>()
    rates.set(window, counts)
    if (rates.size > WINDOWS) rates.delete(Math.min(...rates.keys()))
    const sums = new Map<string, number>()
    for (const [key, by] of spent) {
      const sum = (counts.get(key) ?? 0) + by
      counts.set(key, sum)
      sums.set(key, sum)
    }
    return sums
  }
}
