import { setImmediate } from 'node:timers/promises'
import type { Log } from '../../telemetry/log.ts'
import type { Sql, SqlDatabase } from '../sql.ts'
import type { HeldRecord, HeldRecords, JournalSizes } from './held-records.ts'
import { type DroppedStream, type EventRow, type HeldStream, type JournalBatch, JournalQueue } from './journal-queue.ts'
import { decodeEvents, encodeEvents } from './journal-rows.ts'
import { READ_BYTES, STATE_LIMITS } from './limits.ts'
import type { Sealing } from './sealing.ts'
import { deleteStreams, insertEvents, readEvents, readSizes, totalBytes, trimOldest, trimStream } from './sql-events.ts'
import { ownedEpochs } from './sql-records.ts'
import type { Claim, Journal, JournalEvent } from './state-store.ts'
import type { StoreContact } from './store-contact.ts'

export interface JournalOptions {
  readonly database: SqlDatabase
  readonly contact: StoreContact
  readonly sealing: Sealing
  readonly held: HeldRecords
  readonly self: () => string
  /** Whether no other replica can take a record of this one. */
  readonly isOnly: boolean
  /** Writes records of this replica whose rows are missing, or reports that they are lost. */
  readonly writeAgain: (missing: readonly HeldRecord[]) => Promise<void>
  readonly log: Log
  readonly limits?: Partial<JournalLimits> | undefined
}

interface Ownership {
  readonly isOwn: (of: DroppedStream) => boolean
  readonly missing: readonly HeldRecord[]
}

/** Bytes of one event, of a stream, of a record, and of all journals. */
export type JournalLimits = Readonly<Record<'event' | 'stream' | 'session' | 'store', number>>

const BATCH_MS = 20
const BATCH_BYTES = 256 * 1024
const QUEUE_BYTES = 16 * 1024 * 1024
const RESUME_BYTES = QUEUE_BYTES / 2
const CHECK_BYTES = 16 * 1024 * 1024 // written between two looks at the size of all journals

/** Writes events behind: in batches, each one transaction. */
export class SqlJournal implements Journal {
  readonly #options: JournalOptions
  readonly #limits: JournalLimits
  readonly #waiting: (() => void)[] = []
  readonly #queue: JournalQueue
  #failed: JournalBatch | undefined // written again as it is: part of it may be stored
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> | undefined
  #writing = Promise.resolve()
  #unchecked = CHECK_BYTES // the first batch looks at what is there
  #total = 0

  constructor(options: JournalOptions) {
    this.#options = options
    this.#limits = { ...STATE_LIMITS, ...options.limits }
    this.#queue = new JournalQueue(this.#limits.event)
  }

  get queuedBytes(): number {
    return this.#queue.bytes
  }

  /** The size of all journals, as far as known. */
  get bytes(): number {
    return this.#total
  }

  /** Resolves when the batch that is being written now has ended. */
  get writing(): Promise<void> {
    return this.#writing
  }

  append(claim: Claim, stream: string, seq: number, pieces: readonly Buffer[]): undefined | Promise<void> {
    const record = this.#options.held.of(claim)
    if (!record) return undefined
    this.#queue.append(record, claim.epoch, this.#streamOf(record, stream), seq, pieces)
    return this.#scheduleWrite()
  }

  drop(claim: Claim, stream: string): void {
    const record = this.#options.held.of(claim)
    if (!record) return
    const known = record.streams?.get(stream) ?? { ...newStream(this.#options.sealing, stream), isStored: true }
    this.#queue.drop(record, claim.epoch, known)
    record.streams?.delete(stream)
    void this.#scheduleWrite()
  }

  async read(claim: Claim, stream: string, after: number, limit: number): Promise<JournalEvent[]> {
    const { database, contact, sealing } = this.#options
    while (!this.#queue.isEmpty && !contact.isAway) await this.flush()
    const id = sealing.recordName(claim.kind, claim.id)
    const found = new Map<number, JournalEvent>()
    for (const name of new Set([storedName(sealing, stream), hashedName(sealing, stream)])) {
      const rows = await contact.run(() => readEvents(database, id, name, after, limit))
      for (const { seq, revision, data } of rows) {
        const encoded = sealing.open(placeOf(id, name, seq, revision), data)
        for (const event of encoded ? decodeEvents(seq, encoded, after) : []) found.set(event.seq, event)
      }
      if (rows.length > 0) break
    }
    return firstOf(
      [...found.values()].sort((a, b) => a.seq - b.seq),
      limit,
    )
  }

  /** Writes everything that is queued now. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#flushing
    this.#flushing ??= this.#writeQueue().finally(() => {
      this.#flushing = undefined
      if (!this.#queue.isEmpty && !this.#options.contact.isAway) this.#schedule(BATCH_MS) // added at the last moment
      this.#release()
    })
    await this.#flushing
  }

  #scheduleWrite(): undefined | Promise<void> {
    // While the database is away, callers do not wait for it: the oldest events are given up.
    if (this.#options.contact.isAway) return void this.#queue.shrink(QUEUE_BYTES)
    const { bytes } = this.#queue
    if (bytes >= BATCH_BYTES && !this.#flushing) this.#schedule(0)
    else if (this.#timer === undefined && !this.#flushing) this.#schedule(BATCH_MS)
    return bytes > QUEUE_BYTES ? new Promise(resolve => this.#waiting.push(resolve)) : undefined
  }

  #streamOf(record: HeldRecord, stream: string): HeldStream {
    const streams = record.streams ?? new Map<string, HeldStream>()
    record.streams = streams
    const known = streams.get(stream)
    if (known) return known
    const added = newStream(this.#options.sealing, stream)
    streams.set(stream, added)
    return added
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.flush(), ms)
  }

  #release(): void {
    if (this.#queue.bytes > RESUME_BYTES && !this.#options.contact.isAway) return
    for (const resume of this.#waiting.splice(0)) resume()
  }

  async #writeQueue(): Promise<void> {
    const { contact, log } = this.#options
    while ((this.#failed || !this.#queue.isEmpty) && !contact.isAway) {
      const batch = this.#failed ?? this.#queue.take(BATCH_BYTES)
      this.#failed = batch
      try {
        const writing = this.#writeBatch(batch)
        this.#writing = writing.catch(() => {})
        await writing
        this.#failed = undefined
        await this.#checkTotal(batch)
      } catch (error) {
        if (contact.isAway) break
        this.#failed = undefined // it can never be written
        log.error({ err: error }, 'events were not stored')
      }
      this.#release()
    }
  }

  /** Events of a record that the database does not have yet, or has lost, wait for it: without it they are not written. */
  async #writeBatch(batch: JournalBatch): Promise<void> {
    const { contact, database, writeAgain } = this.#options
    const write = (awaited: boolean): Promise<readonly HeldRecord[]> =>
      contact.run(() => database.transaction(sql => this.#write(sql, batch, awaited)))
    const missing = await write(false)
    if (missing.length === 0) return
    await writeAgain(missing)
    await write(true)
  }

  /** Writes nothing if rows of records are missing that this replica holds, and returns these, unless they were `awaited`. */
  async #write(sql: Sql, batch: JournalBatch, awaited: boolean): Promise<readonly HeldRecord[]> {
    const { sealing, log } = this.#options
    const { isOwn, missing } = await this.#ownership(sql, batch)
    if (missing.length > 0 && !awaited) return missing
    const dropped = batch.drops.filter(isOwn)
    await deleteStreams(
      sql,
      dropped.map(({ record, stream }) => [record.id, stream.name]),
    )
    for (const each of dropped) forgetStream(each)
    const own = batch.rows.filter(isOwn)
    await insertEvents(
      sql,
      own.map(({ record: { id }, stream: { name: stream }, seq, revision, last, bytes, events }) => {
        const data = sealing.seal(placeOf(id, stream, seq, revision), encodeEvents(events))
        return { id, stream, seq, revision, last, bytes, data }
      }),
    )
    await this.#trim(sql, own)
    if (own.length < batch.rows.length)
      log.debug({ rows: batch.rows.length - own.length }, 'events not stored: their sessions have ended or moved')
    return []
  }

  /** Tells which records are those of this replica still, and which of these the database does not have. */
  async #ownership(sql: Sql, { drops, rows }: JournalBatch): Promise<Ownership> {
    const { isOnly, held, self } = this.#options
    const isHeld = ({ record, epoch }: DroppedStream): boolean => record.epoch === epoch && held.has(record)
    if (isOnly) return { isOwn: isHeld, missing: [] }
    const records = new Set([...drops, ...rows].filter(isHeld).map(({ record }) => record))
    const epochs = await ownedEpochs(
      sql,
      self(),
      [...records].map(({ id }) => id),
    )
    const missing = [...records].filter(({ id, epoch }) => epochs.get(id) !== epoch)
    return { isOwn: of => isHeld(of) && epochs.get(of.record.id) === of.epoch, missing }
  }

  /** Keeps streams and records within their limits. */
  async #trim(sql: Sql, rows: readonly EventRow[]): Promise<void> {
    const { stream: perStream, session: perRecord } = this.#limits
    for (const {
      record,
      stream: { name: stream },
      bytes,
    } of rows) {
      const isUnread = record.journal === 'unread'
      const sizes = typeof record.journal === 'object' ? record.journal : await readJournal(sql, record)
      record.journal = sizes
      const count = (of: string, by: number): void => {
        sizes.streams.set(of, (sizes.streams.get(of) ?? 0) + by)
        sizes.bytes += by
      }
      if (!isUnread) count(stream, bytes) // what was read has this row
      const excess = (sizes.streams.get(stream) ?? 0) - perStream
      if (excess > 0) count(stream, -(await trimStream(sql, record.id, stream, excess + perStream / 16)))
      for (const oldest of sizes.streams.keys()) {
        if (sizes.bytes <= perRecord) break
        count(oldest, -(await trimStream(sql, record.id, oldest, sizes.bytes - perRecord + perRecord / 16)))
        if ((sizes.streams.get(oldest) ?? 0) <= 0) sizes.streams.delete(oldest)
      }
    }
  }

  async #checkTotal({ rows }: JournalBatch): Promise<void> {
    const { contact, database } = this.#options
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0)
    this.#unchecked += bytes
    this.#total += bytes
    const most = this.#limits.store
    if (this.#unchecked < Math.min(CHECK_BYTES, most / 16)) return
    this.#unchecked = 0
    this.#total = await contact.run(() => totalBytes(database))
    if (this.#total <= most) return
    const enough = most - most / 16
    while (this.#total > enough) {
      const trimmed = await contact.run(() => trimOldest(database, this.#total - enough))
      if (trimmed === 0) return
      this.#total -= trimmed
      await setImmediate() // other work goes on
    }
  }
}

const readJournal = async (sql: Sql, { journal, id }: HeldRecord): Promise<JournalSizes> =>
  journal === 'unread' ? readSizes(sql, id) : { bytes: 0, streams: new Map() }

const forgetStream = ({ record: { journal: sizes }, stream: { name } }: DroppedStream): void => {
  if (typeof sizes === 'string') return
  sizes.bytes -= sizes.streams.get(name) ?? 0
  sizes.streams.delete(name)
}

/** The first events, at most `limit` and about a mebibyte. */
const firstOf = (events: readonly JournalEvent[], limit: number): JournalEvent[] => {
  let bytes = 0
  const end = events.findIndex(({ data }, at) => {
    const isEnough = at >= limit || bytes >= READ_BYTES
    bytes += data.length
    return isEnough
  })
  return end < 0 ? [...events] : events.slice(0, end)
}

const placeOf = (id: string, stream: string, seq: number, revision: number): string =>
  `event:${id}:${stream}:${seq}:${revision}`

// Counters of the gateway, and request ids that are numbers, written in hex.
const COUNTED = /^[a-z]+\d+(?:_\d+)?(?:r(?:3\d)+)?$/

/**
 * The name of a stream in the database. One that says nothing is stored as it is: that saves the hash, and the streams
 * of a record, which come one after the other, are written side by side. Before, all were hashed.
 */
const storedName = (sealing: Sealing, stream: string): string =>
  COUNTED.test(stream) ? stream : hashedName(sealing, stream)

const hashedName = (sealing: Sealing, stream: string): string => sealing.nameOf(`stream:${stream}`)

/** Each home has streams of its own, so nothing of a new one is stored. */
const newStream = (sealing: Sealing, stream: string): HeldStream => ({
  name: storedName(sealing, stream),
  last: Number.NEGATIVE_INFINITY,
  revisions: 0,
  queued: [],
  isStored: false,
})
