import type { HeldStream } from './journal-queue.ts'
import type { RecordRow } from './sql-records.ts'
import type { Claim, RecordKind } from './state-store.ts'

/** What is known of the journal of a record. */
export interface JournalSizes {
  bytes: number
  readonly streams: Map<string, number> // bytes, by the stored name
}

/** A record of this replica, as it is stored or is to be stored. */
export interface HeldRecord extends RecordRow {
  readonly claim: Claim
  epoch: number
  expires: number
  body: Buffer // sealed
  /** Whether the database does not have this body yet. */
  isUnsaved: boolean
  /** Whether the INSERT is under way. A concurrent write would make the INSERT fail with `exists`. */
  isCreating: boolean
  isRemoved: boolean
  saving: Promise<void> | undefined
  streams: Map<string, HeldStream> | undefined // by name
  journal: 'empty' | 'unread' | JournalSizes
}

/** The number that stands for "never" in the database. */
export const NEVER_MS = Number.MAX_SAFE_INTEGER

/** A record as it is held after it was created or taken. Written out: members added to a spread one cost 3 µs. */
export const holdRecord = (row: RecordRow, id: string, journal: HeldRecord['journal']): HeldRecord => ({
  kind: row.kind,
  id: row.id,
  home: row.home,
  epoch: row.epoch,
  expires: row.expires,
  body: asBuffer(row.body),
  claim: { kind: row.kind, id, epoch: row.epoch },
  isUnsaved: false,
  isCreating: false,
  isRemoved: false,
  saving: undefined,
  streams: undefined,
  journal,
})

/** The same memory: a copy would come from the buffer pool, and keep all of it. */
const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The records that this replica holds; written again if the database has lost them. */
export class HeldRecords {
  // By kind, then by id: a key of both would be a new text for each event of a stream.
  readonly #records = new Map<RecordKind, Map<string, HeldRecord>>()
  readonly #removed = new Map<string, HeldRecord>() // while the database was away

  /** Whether something waits to be written. */
  hasUnsaved = false

  get size(): number {
    let size = 0
    for (const { size: ofKind } of this.#records.values()) size += ofKind
    return size
  }

  get(kind: RecordKind, id: string): HeldRecord | undefined {
    return this.#records.get(kind)?.get(id)
  }

  /** The record of a claim that is still valid, as far as this replica knows. */
  of({ kind, id, epoch }: Claim): HeldRecord | undefined {
    const record = this.#records.get(kind)?.get(id)
    return record?.epoch === epoch ? record : undefined
  }

  /** Whether a record is held still: neither removed nor lost. */
  has(record: HeldRecord): boolean {
    return this.get(record.claim.kind, record.claim.id) === record
  }

  add(record: HeldRecord): void {
    const { kind, id } = record.claim
    this.#removed.delete(`${kind}:${id}`)
    const ofKind = this.#records.get(kind) ?? new Map<string, HeldRecord>()
    this.#records.set(kind, ofKind.set(id, record))
  }

  delete(record: HeldRecord): void {
    const { kind, id } = record.claim
    if (this.has(record)) this.#records.get(kind)?.delete(id)
  }

  /** Remembers that a record is to be removed from the database. */
  removeLater(record: HeldRecord): void {
    this.hasUnsaved = true
    this.#removed.set(`${record.claim.kind}:${record.claim.id}`, record)
  }

  takeRemoved(): HeldRecord[] {
    const removed = [...this.#removed.values()]
    this.#removed.clear()
    return removed
  }

  /** The records to write again; one that is being created is written by that, or later. */
  unsaved(): HeldRecord[] {
    return this.#all().filter(({ isUnsaved, isCreating }) => isUnsaved && !isCreating)
  }

  markAllUnsaved(): void {
    this.hasUnsaved = true
    for (const record of this.#all()) {
      record.isUnsaved = true
      record.journal = 'unread'
    }
  }

  /** Drops every record and returns what they were. */
  clear(): HeldRecord[] {
    const all = this.#all()
    this.#records.clear()
    return all
  }

  #all(): HeldRecord[] {
    return [...this.#records.values()].flatMap(ofKind => [...ofKind.values()])
  }
}
