import { SingleFlight } from '../../std/single-flight.ts'
import { SteadyClock } from '../../std/steady-clock.ts'
import { within } from '../../std/time.ts'
import type { Log } from '../../telemetry/log.ts'
import { POSTGRES } from '../dialect.ts'
import { isSqlFailure, type SqlDatabase } from '../sql.ts'
import type { HeldRecord } from './held-records.ts'
import { readMeta } from './prepare-state.ts'
import { Sealing } from './sealing.ts'
import type { KeyRing } from './secret.ts'
import { SqlClaims } from './sql-claims.ts'
import { createSqlInbox } from './sql-inbox.ts'
import { type JournalLimits, SqlJournal } from './sql-journal.ts'
import { SqlMembers } from './sql-members.ts'
import { createSqlShared } from './sql-shared.ts'
import { stateTables } from './state-schema.ts'
import {
  type Claim,
  type Held,
  type Inbox,
  type RecordKind,
  type ReplicaAbout,
  type Shared,
  StateError,
  type StateStore,
  type StoreHealth,
  type TakeResult,
  type WriteOptions,
} from './state-store.ts'
import { StoreContact } from './store-contact.ts'
import { claimIdentity, newIdentity, type StoreIdentity } from './store-identity.ts'
import { Topics, type Wake } from './wake.ts'

export interface SqlStateOptions {
  /** With the tables; see `prepareSqlite` and `preparePostgres`. */
  readonly database: SqlDatabase
  /** Creates the tables again, after the database has lost its data. */
  readonly prepare: () => Promise<void>
  readonly keys: KeyRing
  readonly wake: Wake
  readonly log: Log
  readonly about?: ReplicaAbout | undefined
  /** Work of each heartbeat, like checkpoints. */
  readonly upkeep?: () => void
  /** Resolves when everything committed so far survives a power cut. */
  readonly sync?: () => Promise<void>
  /** Whether no other replica is alive yet, so that members in the database are those of ended processes. */
  readonly isFirst?: boolean
  /** Whether no other replica can join, either. */
  readonly isOnly?: boolean
  readonly beatMs?: number
  readonly leaseMs?: number
  readonly pollMs?: number
  readonly limits?: Partial<JournalLimits>
}

const BEAT_MS = 2000
const LEASE_MS = 6000
const POLL_MS = 5000
const RECOVERY_MS = 5000
const MEMBERS = '$members' // the topic that wakes replicas when one has joined or left
const NO_ADDRESS: ReplicaAbout = { address: '', labels: [] }
// Tables that are gone are a database without its data, like one with another identity.
const MISSING_TABLE = /no such table|relation .* does not exist/

/** State in SQLite or PostgreSQL. */
export class SqlState implements StateStore {
  readonly members: SqlMembers
  readonly journal: SqlJournal
  readonly inbox: Inbox
  readonly shared: Shared
  readonly isShared: boolean
  readonly #options: SqlStateOptions
  #identity: StoreIdentity
  readonly #contact: StoreContact
  readonly #claims: SqlClaims
  readonly #topics: Topics
  readonly #clock = new SteadyClock()
  readonly #recovering = new SingleFlight()
  #timer: NodeJS.Timeout | undefined
  #beating: Promise<void> | undefined
  #isClosed = false

  private constructor(options: SqlStateOptions, identity: StoreIdentity) {
    const { database, keys, wake, log, about = NO_ADDRESS, beatMs = BEAT_MS, leaseMs = LEASE_MS } = options
    this.#options = options
    this.#identity = identity
    this.isShared = options.isOnly !== true
    const sealing = new Sealing(keys, identity.names)
    const contact = new StoreContact(database.location, log)
    this.#contact = contact
    this.#topics = new Topics(sealing, wake, options.pollMs ?? POLL_MS)
    const check = () => this.#checkIdentity()
    const members = new SqlMembers({
      ...{ database, contact, log, about, beatMs, leaseMs },
      notify: () => this.#topics.notify(MEMBERS),
      onLapsed: () => this.#claims.drop(),
      check,
    })
    this.members = members
    const self = () => members.self
    const sync = options.sync ?? (async () => {})
    const eventsWritten = () => this.journal.writing
    this.#claims = new SqlClaims({ database, contact, sealing, members, sync, eventsWritten, check })
    const { held } = this.#claims
    const { isOnly = false, limits } = options
    const writeAgain = (missing: readonly HeldRecord[]) => this.#claims.writeAgain(missing)
    this.journal = new SqlJournal({ database, contact, sealing, held, self, isOnly, writeAgain, log, limits })
    this.inbox = createSqlInbox({ database, contact, sealing, held, self, notify: topic => this.#topics.notify(topic) })
    this.shared = createSqlShared({ database, contact, sealing, topics: this.#topics })
    contact.onBack(() => void this.#saveAll())
    this.#topics.on(MEMBERS, () => void contact.run(() => members.refresh()).catch(() => {}))
  }

  /** Joins the replicas that use a database. */
  static async join(options: SqlStateOptions): Promise<SqlState> {
    const { database, keys } = options
    const state = new SqlState(options, await claimIdentity(database, keys))
    if (options.isFirst) await database.run(`DELETE FROM ${stateTables(database).member}`)
    await state.members.join()
    state.#schedule(options.beatMs ?? BEAT_MS)
    return state
  }

  create(kind: RecordKind, id: string, body: Buffer, options: WriteOptions): Promise<Claim> {
    return this.#claims.create(kind, id, body, options)
  }

  read(kind: RecordKind, id: string): Promise<Held | undefined> {
    return this.#claims.read(kind, id)
  }

  list(kind: RecordKind, limit: number): Promise<Held[]> {
    return this.#claims.list(kind, limit)
  }

  take(kind: RecordKind, id: string): Promise<TakeResult> {
    return this.#claims.take(kind, id)
  }

  write(claim: Claim, body: Buffer, options: WriteOptions): Promise<boolean> {
    return this.#claims.write(claim, body, options)
  }

  remove(claim: Claim): Promise<void> {
    return this.#claims.remove(claim)
  }

  async takeAbandoned(kind: RecordKind, why: 'expired' | 'orphaned', limit: number): Promise<Held[]> {
    // After a jump of the clock, much seems to have expired that has not.
    const hasJumped = this.#clock.hasJumped(Date.now())
    if ((hasJumped && why === 'expired') || this.#contact.isAway) return []
    return this.#claims.takeAbandoned(kind, why, limit)
  }

  async releaseAll(): Promise<void> {
    this.members.retire()
    await this.journal.flush()
    await this.#claims.saveAll().catch(() => {})
    // The next process with the file knows that this one has ended; to change every record would delay that.
    if (this.#options.isOnly) this.#claims.held.clear()
    else await this.#claims.releaseAll()
  }

  onLost(listener: (claim: Claim) => void): () => void {
    return this.#claims.lost.add(listener)
  }

  health(): StoreHealth {
    const isPostgres = this.#options.database.dialect === POSTGRES
    const { reason } = this.#contact
    const away = isPostgres ? 'away' : 'memory-only'
    return {
      engine: isPostgres ? 'postgres' : 'sqlite',
      state: reason === undefined ? 'ok' : away,
      reason,
      claims: this.#claims.held.size,
      journalBytes: this.journal.bytes,
      queuedBytes: this.journal.queuedBytes,
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#beating
    await this.#claims.flush()
    await this.journal.flush()
    await this.#contact.run(() => this.members.leave()).catch(() => {})
    await this.#topics.close()
    await this.#options.database.close()
  }

  #schedule(ms: number): void {
    if (this.#isClosed) return
    this.#timer = setTimeout(() => {
      this.#beating = this.#beat()
    }, ms).unref()
  }

  async #beat(): Promise<void> {
    const next = await this.members.beat()
    if (this.#claims.held.hasUnsaved && !this.#contact.isAway) await this.#saveAll()
    if (!this.#contact.isDamaged) this.#options.upkeep?.()
    this.#schedule(next)
  }

  /** A database that has lost its data gets it again from the replicas. */
  async #checkIdentity(): Promise<void> {
    const instance = await readMeta(this.#options.database, 'instance').catch((error: unknown) => {
      if (isSqlFailure(error, 'other') && MISSING_TABLE.test(error.message)) return undefined
      throw error
    })
    if (instance === this.#identity.instance) return
    // Not for longer: other callers share it, and it may hang.
    await this.#recovering.run(() => within(RECOVERY_MS, this.#recover(), notRecovered))
  }

  async #recover(): Promise<void> {
    const { database, prepare, keys, log } = this.#options
    await prepare()
    const { instance, names } = this.#identity
    const found = await claimIdentity(database, keys, { ...newIdentity(), names })
    if (found.instance === instance) return // another caller has noticed it before
    log.warn({ store: database.location }, 'store lost its data; it is written again')
    if (!found.names.equals(names))
      log.error({ store: database.location }, 'store has another key for ids; restart this replica')
    this.#identity = found
    this.#claims.held.markAllUnsaved()
    await this.members.joinEmptied()
    if (!this.#contact.isAway) void this.#saveAll()
  }

  /** Writes what was queued while the database was away. */
  async #saveAll(): Promise<void> {
    try {
      await this.#claims.saveAll()
      await this.journal.flush()
    } catch (error) {
      this.#claims.held.hasUnsaved = true
      if (!this.#contact.isAway) this.#options.log.error({ err: error }, 'records were not stored')
    }
  }
}

const notRecovered = (): never => {
  throw new StateError('away', `its data is lost, and its tables were not created again within ${RECOVERY_MS / 1000} s`)
}
