import type { Sql, SqlDatabase } from '../sql.ts'
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
}

const TAKE_ATTEMPTS = 4
const RESTORE_BATCH = 50
const UNREADABLE_MS = 24 * 60 * 60_000 // until an expired record that cannot be opened is deleted: a newer replica may

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
  readonly #unsure = new Map<RecordKind, readonly AbandonedBatch[]>() // whose transaction gave no answer

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  async create(kind: RecordKind, id: string, body: Buffer, options: WriteOptions): Promise<Claim> {
    checkBody(kind, body)
    const { database, contact, sealing, members } = this.#options
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
    record.isUnsaved = true
    if (!isHomeless(kind)) this.held.add(record)
    try {
      const epoch = await contact.run(() => records.insertRecord(database, record, Date.now()))
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
    }
    return { kind, id, epoch: record.epoch }
  }

  async read(kind: RecordKind, id: string): Promise<Held | undefined> {
    const { database, contact, sealing } = this.#options
    const own = this.held.get(kind, id)
    if (own && (own.isUnsaved || contact.isAway)) return own.expires > Date.now() ? this.#heldOf(own) : undefined
    const name = sealing.recordName(kind, id)
    const row = await contact.run(() => records.findRecord(database, name, Date.now()))
    return row && this.#opened(row)
  }

  async list(kind: RecordKind, limit: number): Promise<Held[]> {
    const { database, contact } = this.#options
    const rows = await contact.run(() => records.listRecords(database, kind, Date.now(), limit))
    return rows.flatMap(row => this.#opened(row) ?? [])
  }

  async take(kind: RecordKind, id: string): Promise<TakeResult> {
    const { database, contact, sealing, members } = this.#options
    const own = this.held.get(kind, id)
    if (own?.isUnsaved && own.expires > Date.now()) return mine(this.#heldOf(own))
    const name = sealing.recordName(kind, id)
    if (isHomeless(kind)) {
      const row = await contact.run(() => records.takeHomeless(database, name, Date.now()))
      const held = row && this.#opened(row)
      return held ? mine(held) : { kind: 'none' }
    }
    for (let attempt = 0; attempt < TAKE_ATTEMPTS; attempt++) {
      const row = await contact.run(() => records.findRecord(database, name, Date.now()))
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
    const { contact, database, sealing, sync } = this.#options
    const expires = Math.min(options.expires, NEVER_MS)
    if (isHomeless(claim.kind)) {
      const fence = this.#fence(claim)
      const row = { ...fence, kind: claim.kind, expires, body: sealing.sealRecord(fence.id, claim.id, body) }
      const isWritten = await contact.run(() => records.updateRecord(database, row))
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
      throw new StateError('away', `The store cannot be used: ${contact.reason}.`)
    if (options.durable) await sync()
    return this.held.of(claim) === record
  }

  async remove(claim: Claim): Promise<void> {
    const { contact, database } = this.#options
    const record = this.held.of(claim)
    if (!record && !isHomeless(claim.kind)) return
    if (record) {
      record.isRemoved = true
      this.held.delete(record)
    }
    try {
      await contact.run(() => records.deleteRecord(database, record ?? this.#fence(claim)))
    } catch (error) {
      if (!isAway(error) || !record) throw error
      this.held.removeLater(record)
    }
  }

  async takeAbandoned(kind: RecordKind, why: 'expired' | 'orphaned', limit: number): Promise<Held[]> {
    const { database, contact, members } = this.#options
    const now = Date.now()
    const find = (sql: Sql): Promise<records.RecordRow[]> =>
      why === 'expired'
        ? records.findExpired(sql, kind, now, members.self, limit)
        : records.findOrphaned(sql, kind, now, limit)
    const before = await this.#settleUnsure(kind)
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
    await contact.run(run).catch((error: unknown) => {
      this.#unsure.set(kind, [...(this.#unsure.get(kind) ?? []), { claimed: before, isRunning: false }, batch])
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

  async releaseAll(): Promise<void> {
    const { database, contact, members } = this.#options
    this.held.clear()
    await contact.run(() => records.releaseRecords(database, members.self))
  }

  /** Drops everything that was held under a former name. What was removed under it is still to be deleted. */
  drop(): void {
    for (const { claim, epoch } of this.held.clear()) this.lost.call({ ...claim, epoch })
  }

  /** Writes what could not be written while the database was away. */
  async saveAll(): Promise<void> {
    const { database, contact, members } = this.#options
    this.held.hasUnsaved = false
    for (const record of this.held.takeRemoved())
      await contact.run(() => records.deleteRecord(database, record)).catch(() => this.held.removeLater(record))
    const unsaved = this.held.unsaved()
    for (let from = 0; from < unsaved.length; from += RESTORE_BATCH) {
      const batch = unsaved.slice(from, from + RESTORE_BATCH).filter(({ isRemoved }) => !isRemoved)
      const bodies = batch.map(({ body }) => body)
      const stored = await contact.run(() =>
        database.transaction(async sql => {
          const results: boolean[] = []
          for (const record of batch) results.push(await records.restoreRecord(sql, record, members.self))
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
    const { contact, database } = this.#options
    if (!record.isUnsaved || contact.isAway) return
    const { body } = record
    try {
      const isWritten = await contact.run(() => records.updateRecord(database, record))
      if (!isWritten) this.held.delete(record)
      else if (record.body === body) record.isUnsaved = false
    } catch (error) {
      if (!isAway(error)) throw error
      this.held.hasUnsaved = true
    }
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
