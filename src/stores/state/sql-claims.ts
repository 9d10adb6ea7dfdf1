import type { Sql, SqlDatabase } from '../sql.ts'
import { GroupedWrites } from './grouped-writes.ts'
import { type HeldRecord, HeldRecords, holdRecord, NEVER_MS } from './held-records.ts'
import { checkBody } from './limits.ts'
import { Listeners } from './listeners.ts'
import type { Sealing } from './sealing.ts'
import type { SqlMembers } from './sql-members.ts'
import * as records from './sql-records.ts'
import {
  type Claim,
  type Held,
  isHomeless,
  type RecordKind,
  StateError,
  type TakeResult,
  type WriteOptions,
} from './state-store.ts'
import type { StoreContact } from './store-contact.ts'

export interface ClaimsOptions {
  readonly database: SqlDatabase
  readonly contact: StoreContact
  readonly sealing: Sealing
  readonly members: SqlMembers
  /** Resolves when everything committed so far survives a power cut. */
  readonly sync: () => Promise<void>
  /** Resolves when the events that are being written now are. */
  readonly eventsWritten: () => Promise<void> | undefined
  /** Finds out whether the database has lost its data; then everything that is held is to be written again. */
  readonly check: () => Promise<void>
}

const TAKE_ATTEMPTS = 4
const RESTORE_BATCH = 16 // in PostgreSQL each takes the time of the network, and StoreContact limits that of all
const UNREADABLE_MS = 24 * 60 * 60_000 // until an expired record that cannot be opened is deleted: a newer replica may

// Clients keep their ids, and give them up when they are told that there is no such session or task.
const KEPT_BY_CLIENTS: ReadonlySet<RecordKind> = new Set(['session', 'task'])

const isAway = (error: unknown): boolean => error instanceof StateError && error.reason === 'away'

interface ClaimedRecord {
  readonly row: records.RecordRow
  readonly held: Held
}

/** Records that one transaction claims. */
interface AbandonedBatch {
  claimed: ClaimedRecord[]
  isRunning: boolean
}

/** Creates, takes, writes and removes records, and knows those of this replica. */
export class SqlClaims {
  readonly held = new HeldRecords()
  readonly lost = new Listeners<Claim>()
  readonly #options: ClaimsOptions
  readonly #writes: GroupedWrites
  readonly #unsure = new Map<RecordKind, readonly AbandonedBatch[]>() // whose transaction gave no answer

  constructor(options: ClaimsOptions) {
    this.#options = options
    this.#writes = new GroupedWrites(options.database, options.contact)
  }

  async create(kind: RecordKind, id: string, body: Buffer, options: WriteOptions): Promise<Claim> {
    checkBody(kind, body)
    const { sealing, members } = this.#options
    const known = this.held.get(kind, id)
    if (known && known.expires > Date.now()) throw exists(kind)
    const name = sealing.recordName(kind, id)
    const record = holdRecord(
      {
        kind,
        id: name,
        home: isHomeless(kind) ? '' : members.self,
        epoch: 1,
        expires: Math.min(options.expires, NEVER_MS),
        body: sealing.sealRecord(name, id, body),
      },
      id,
      'empty',
    )
    record.isUnsaved = record.isCreating = true
    if (!isHomeless(kind)) this.held.add(record)
    try {
      const epoch = await this.#writes.run(name, sql => records.insertRecord(sql, record, Date.now()))
      if (epoch === undefined) throw exists(kind)
      record.epoch = epoch
      record.isUnsaved = false
      if (options.durable) await this.#options.sync()
    } catch (error) {
      const isQueued = isAway(error) && !options.durable && !isHomeless(kind)
      if (!isQueued) {
        this.held.delete(record)
        throw error
      }
      this.held.hasUnsaved = true
    } finally {
      record.isCreating = false
    }
    return { kind, id, epoch: record.epoch }
  }

  async read(kind: RecordKind, id: string): Promise<Held | undefined> {
    const { database, contact, sealing } = this.#options
    const own = this.held.get(kind, id)
    if (own && (own.isUnsaved || contact.isAway)) return own.expires > Date.now() ? this.#heldOf(own) : undefined
    const name = sealing.recordName(kind, id)
    this.#writes.beginEarly(name)
    const row = await contact.run(() => records.findRecord(database, name, Date.now()))
    if (!row) await this.#checkMissing(kind)
    return row && this.#opened(row)
  }

  async list(kind: RecordKind, limit: number): Promise<Held[]> {
    const { database, contact } = this.#options
    this.#writes.beginEarly()
    const rows = await contact.run(() => records.listRecords(database, kind, Date.now(), limit))
    return rows.flatMap(row => this.#opened(row) ?? [])
  }

  async take(kind: RecordKind, id: string): Promise<TakeResult> {
    const { database, contact, sealing, members } = this.#options
    const own = this.held.get(kind, id)
    if (own?.isUnsaved && own.expires > Date.now()) return mine(this.#heldOf(own))
    const name = sealing.recordName(kind, id)
    this.#writes.beginEarly(name)
    if (isHomeless(kind)) {
      const row = await contact.run(() => records.takeHomeless(database, name, Date.now()))
      const held = row && this.#opened(row)
      return held ? mine(held) : { kind: 'none' }
    }
    for (let attempt = 0; attempt < TAKE_ATTEMPTS; attempt++) {
      const row = await contact.run(() => records.findRecord(database, name, Date.now()))
      if (!row) await this.#checkMissing(kind)
      const held = row && this.#opened(row)
      if (!row || !held) return { kind: 'none' }
      if (row.home === members.self) return mine(this.#hold(row, held))
      if (members.at(row.home)) await contact.run(() => members.endLapsed(row.home))
      if (members.at(row.home)) return { kind: 'other', home: row.home }
      const epoch = await contact.run(() => this.#claim(row))
      if (epoch !== undefined) return mine(this.#hold({ ...row, home: this.#homeFor(kind), epoch }, { ...held, epoch }))
      await contact.run(() => members.refresh()) // a new replica has taken it
    }
    throw new StateError('away', `Several replicas take the record of kind "${kind}" from each other.`)
  }

  async write(claim: Claim, body: Buffer, options: WriteOptions): Promise<boolean> {
    checkBody(claim.kind, body)
    const { contact, sealing, sync } = this.#options
    const expires = Math.min(options.expires, NEVER_MS)
    if (isHomeless(claim.kind)) {
      const fence = this.#fence(claim)
      const row = { ...fence, kind: claim.kind, expires, body: sealing.sealRecord(fence.id, claim.id, body) }
      const isWritten = await this.#writes.run(row.id, sql => records.updateRecord(sql, row))
      if (isWritten && options.durable) await sync()
      return isWritten
    }
    const record = this.held.of(claim)
    if (!record) return false
    record.body = sealing.sealRecord(record.id, claim.id, body)
    record.expires = expires
    record.isUnsaved = true
    this.held.hasUnsaved ||= contact.isAway
    // A write that failed was reported to its own caller; it does not keep later ones from being tried.
    record.saving = (record.saving ?? Promise.resolve()).catch(() => {}).then(() => this.#save(record))
    await record.saving
    if (options.durable && record.isUnsaved)
      throw new StateError('away', `The store cannot be used: ${contact.reason ?? 'it has lost its data'}.`)
    if (options.durable) await sync()
    return this.held.of(claim) === record
  }

  async remove(claim: Claim): Promise<void> {
    const { database, contact, eventsWritten } = this.#options
    const record = this.held.of(claim)
    if (!record && !isHomeless(claim.kind)) return
    if (record) {
      record.isRemoved = true
      this.held.delete(record)
    }
    try {
      const fence = record ?? this.#fence(claim)
      // On another connection, events that are being written would stay without their record.
      if (database.dialect.locksRows) await eventsWritten()
      await this.#writes.run(fence.id, sql => records.deleteRecord(sql, fence), true)
    } catch (error) {
      if (!isAway(error) || !record) throw error
      if (!contact.isDamaged) this.held.removeLater(record)
    }
  }

  async takeAbandoned(kind: RecordKind, why: 'expired' | 'orphaned', limit: number): Promise<Held[]> {
    const { database, contact, members } = this.#options
    const now = Date.now()
    this.#writes.beginEarly()
    const settled = await this.#settleUnsure(kind)
    const before = settled.slice(0, limit)
    if (settled.length > limit) this.#addUnsure(kind, { claimed: settled.slice(limit), isRunning: false })
    const left = limit - before.length // PostgreSQL rejects a negative LIMIT, and SQLite takes all then
    const find = (sql: Sql): Promise<records.RecordRow[]> =>
      why === 'expired'
        ? records.findExpired(sql, kind, now, members.self, left)
        : records.findOrphaned(sql, kind, now, left)
    const batch: AbandonedBatch = { claimed: [], isRunning: false }
    const claim = async (sql: Sql): Promise<void> => {
      batch.claimed = []
      for (const row of await find(sql)) {
        const held = this.#opened(row)
        // Such rows come first at each sweep, and would keep it from those after them.
        if (!held && row.expires < now - UNREADABLE_MS) await records.deleteRecord(sql, row)
        const epoch = held && (row.home === members.self ? row.epoch : await this.#claim(row, sql))
        if (held && epoch !== undefined)
          batch.claimed.push({ row: { ...row, home: this.#homeFor(kind), epoch }, held: { ...held, epoch } })
      }
    }
    const run = async (): Promise<void> => {
      batch.isRunning = true
      await database.transaction(claim).finally(() => {
        batch.isRunning = false
      })
    }
    if (left > 0)
      await contact.run(run).catch((error: unknown) => {
        this.#addUnsure(kind, { claimed: before, isRunning: false }, batch)
        throw error
      })
    return [...before, ...batch.claimed].map(({ row, held }) => this.#hold(row, held))
  }

  /**
   * What earlier transactions have claimed although this replica got no answer from them, for example because it came too
   * late. Other replicas cannot take these records, and no one would use them.
   */
  async #settleUnsure(kind: RecordKind): Promise<ClaimedRecord[]> {
    const { database, contact, members } = this.#options
    const batches = this.#unsure.get(kind) ?? []
    const running = batches.filter(({ isRunning }) => isRunning)
    const settled: ClaimedRecord[] = []
    for (const { claimed } of batches.filter(({ isRunning }) => !isRunning))
      for (const { row, held } of claimed) {
        if (isHomeless(kind) || this.held.of(held)) continue
        const stored = await contact.run(() => records.findRecord(database, row.id, Date.now()))
        if (stored?.home === members.self && stored.epoch === row.epoch) settled.push({ row: stored, held })
      }
    if (running.length > 0) this.#unsure.set(kind, running)
    else this.#unsure.delete(kind)
    return settled
  }

  #addUnsure(kind: RecordKind, ...batches: readonly AbandonedBatch[]): void {
    this.#unsure.set(kind, [...(this.#unsure.get(kind) ?? []), ...batches])
  }

  /** Resolves when all writes of before have ended. */
  flush(): Promise<void> {
    return this.#writes.flush()
  }

  async releaseAll(): Promise<void> {
    const { database, contact, members } = this.#options
    this.held.clear()
    this.#writes.beginEarly()
    await contact.run(() => records.releaseRecords(database, members.self))
  }

  /** Drops everything that was held under a former name. What was removed under it is still to be deleted. */
  drop(): void {
    for (const { claim, epoch } of this.held.clear()) this.lost.call({ ...claim, epoch })
  }

  /** Writes what could not be written while the database was away. */
  async saveAll(): Promise<void> {
    const { database, contact } = this.#options
    this.held.hasUnsaved = false
    await this.#writes.flush()
    for (const record of this.held.takeRemoved())
      await contact
        .run(() => database.transaction(sql => records.deleteRecord(sql, record)))
        .catch(() => this.held.removeLater(record))
    await this.#restore(this.held.unsaved())
  }

  /**
   * Writes records whose rows are not there as expected. Another replica has taken the record, or it is not stored yet, or the
   * database has lost it: only its home removes it.
   */
  async writeAgain(missing: readonly HeldRecord[]): Promise<void> {
    await this.#options.contact.run(this.#options.check)
    for (const record of missing) record.journal = 'unread'
    await this.#restore(missing)
  }

  /** Those that another replica has taken are lost. */
  async #restore(missing: readonly HeldRecord[]): Promise<void> {
    const { database, contact } = this.#options
    for (let from = 0; from < missing.length; from += RESTORE_BATCH) {
      const batch = missing.slice(from, from + RESTORE_BATCH).filter(record => this.held.has(record))
      if (batch.length === 0) continue
      const bodies = batch.map(({ body }) => body)
      const stored = await contact.run(() =>
        database.transaction(async sql => {
          const results: boolean[] = []
          for (const record of batch) results.push(await records.restoreRecord(sql, record))
          return results
        }),
      )
      for (const [at, record] of batch.entries()) {
        if (record.isRemoved)
          this.held.removeLater(record) // meanwhile, and this may have written it again
        else if (!stored[at]) this.#lose(record)
        else if (record.body === bodies[at]) record.isUnsaved = false
      }
    }
  }

  /** Writes the latest body. Writes of one record follow each other, so that none overwrites a later one. */
  async #save(record: HeldRecord): Promise<void> {
    if (!record.isUnsaved || this.#options.contact.isAway) return
    const { body } = record
    try {
      const isWritten = await this.#writes.run(record.id, sql => records.updateRecord(sql, record))
      if (!isWritten) await this.writeAgain([record])
      else if (record.body === body) record.isUnsaved = false
    } catch (error) {
      if (!isAway(error)) throw error
      this.held.hasUnsaved = true
    }
  }

  /** While the homes write again what the database has lost, no record is known to be missing. */
  async #checkMissing(kind: RecordKind): Promise<void> {
    if (!KEPT_BY_CLIENTS.has(kind)) return
    const { contact, check, members } = this.#options
    await contact.run(check)
    if (members.isEmptied)
      throw new StateError('away', 'The store has lost its data, and the replicas are writing it again.')
  }

  #lose(record: HeldRecord): void {
    this.held.delete(record)
    this.lost.call({ ...record.claim, epoch: record.epoch })
  }

  #claim(row: records.RecordRow, sql: Sql = this.#options.database): Promise<number | undefined> {
    return records.claimRecord(sql, row, this.#homeFor(row.kind))
  }

  #hold(row: records.RecordRow, held: Held): Held {
    if (!isHomeless(row.kind)) {
      const known = this.held.of(held)
      if (!known) this.held.add(holdRecord(row, held.id, 'unread'))
    }
    return held
  }

  #homeFor(kind: RecordKind): string {
    return isHomeless(kind) ? '' : this.#options.members.self
  }

  #fence({ kind, id, epoch }: Claim): records.RecordFence {
    return { id: this.#options.sealing.recordName(kind, id), home: this.#homeFor(kind), epoch }
  }

  #heldOf(record: HeldRecord): Held {
    const content = this.#options.sealing.openRecord(record.id, record.body)
    return { ...record.claim, epoch: record.epoch, body: content?.body ?? Buffer.alloc(0) }
  }

  /** Undefined if the body cannot be opened: of a newer version, or changed. Such a record is left alone. */
  #opened(row: records.RecordRow): Held | undefined {
    const content = this.#options.sealing.openRecord(row.id, row.body)
    return content && { kind: row.kind, id: content.id, epoch: row.epoch, body: content.body }
  }
}

const exists = (kind: RecordKind): StateError =>
  new StateError('exists', `A record of kind "${kind}" with this id exists.`)

const mine = (held: Held): TakeResult => ({ kind: 'mine', held })
