import { setImmediate } from 'node:timers/promises'
import type { Log } from '../../telemetry/log.ts'
import type { Sql, SqlDatabase } from '../sql.ts'
import type { HeldRecord, HeldRecords, HeldStream, JournalSizes } from './held-records.ts'
import {
  decodeEvents,
  type EventRow,
  encodeEvents,
  gatherRows,
  type JournalBatch,
  type QueuedEvents,
} from './journal-rows.ts'
import { READ_BYTES, STATE_LIMITS } from './limits.ts'
import type { Sealing } from './sealing.ts'
import { deleteStream, insertEvents, readEvents, readSizes, totalBytes, trimOldest, trimStream } from './sql-events.ts'
import { ownedEpochs } from './sql-records.ts'
import type { Claim, Journal, JournalEvent } from './state-store.ts'
import type { StoreContact } from './store-contact.ts'

export interface JournalOptions {
  readonly database: SqlDatabase
  readonly contact: StoreContact
  readonly sealing: Sealing
  readonly held: HeldRecords
  readonly self: () => string
  readonly log: Log
  readonly limits?: Partial<JournalLimits> | undefined
}

/** Bytes of one event, of a stream, of a record, and of all journals. */
export type JournalLimits = Readonly<Record<'event' | 'stream' | 'session' | 'store', number>>

const BATCH_MS = 20
const BATCH_BYTES = 256 * 1024
const QUEUE_BYTES = 16 * 1024 * 1024
const RESUME_BYTES = QUEUE_BYTES / 2
const CHECK_BYTES = 16 * 1024 * 1024 // written between two looks at the size of all journals
const EVENT_BYTES = 64 // of the queue itself

const sizeOf = ({ data }: QueuedEvents): number => {
  let size = EVENT_BYTES
  if (data) for (const { length } of data) size += length + EVENT_BYTES
  return size
}

/** Writes events behind: in batches, each one transaction. */
export class SqlJournal implements Journal {
  readonly #options: JournalOptions
  readonly #limits: JournalLimits
  readonly #waiting: (() => void)[] = []
  #queue: QueuedEvents[] = []
  #queuedBytes = 0
  #failed: JournalBatch | undefined // written again as it is: part of it may be stored
  #timer: NodeJS.Timeout | undefined
  #flushing: Promise<void> | undefined
  #unchecked = CHECK_BYTES // the first batch looks at what is there
  #total = 0

  constructor(options: JournalOptions) {
    this.#options = options
    this.#limits = { ...STATE_LIMITS, ...options.limits }
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  /** The size of all journals, as far as known. */
  get bytes(): number {
    return this.#total
  }

  append(claim: Claim, stream: string, seq: number, data: readonly Buffer[]): undefined | Promise<void> {
    return this.#add(claim, stream, seq, data)
  }

  drop(claim: Claim, stream: string): void {
    void this.#add(claim, stream, 0, undefined)
  }

  async read(claim: Claim, stream: string, after: number, limit: number): Promise<JournalEvent[]> {
    const { database, contact, sealing } = this.#options
    while (this.#queue.length > 0 && !contact.isAway) await this.flush()
    const [id, name] = [sealing.recordName(claim.kind, claim.id), sealing.nameOf(`stream:${stream}`)]
    const rows = await contact.run(() => readEvents(database, id, name, after, limit))
    const found = new Map<number, JournalEvent>()
    for (const { seq, revision, data } of rows) {
      const encoded = sealing.open(placeOf(id, name, seq, revision), data)
      for (const event of encoded ? decodeEvents(seq, encoded) : []) if (event.seq > after) found.set(event.seq, event)
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
      if (this.#queue.length > 0 && !this.#options.contact.isAway) this.#schedule(BATCH_MS) // added at the last moment
      this.#release()
    })
    await this.#flushing
  }

  #add(claim: Claim, stream: string, seq: number, data: readonly Buffer[] | undefined): undefined | Promise<void> {
    const { held, contact } = this.#options
    const record = held.of(claim)
    if (!record) return undefined
    const queued = { record, epoch: claim.epoch, stream: this.#streamOf(record, stream), seq, data }
    if (!data) record.streams?.delete(stream)
    this.#queue.push(queued)
    this.#queuedBytes += sizeOf(queued)
    if (contact.isAway) return this.#shrink()
    if (this.#queuedBytes >= BATCH_BYTES && !this.#flushing) this.#schedule(0)
    else if (this.#timer === undefined && !this.#flushing) this.#schedule(BATCH_MS)
    return this.#queuedBytes > QUEUE_BYTES ? new Promise(resolve => this.#waiting.push(resolve)) : undefined
  }

  #streamOf(record: HeldRecord, stream: string): HeldStream {
    const streams = record.streams ?? new Map<string, HeldStream>()
    record.streams = streams
    const known = streams.get(stream)
    if (known) return known
    // Each home has streams of its own, so nothing of a new one is stored.
    const name = this.#options.sealing.nameOf(`stream:${stream}`)
    const added = { name, last: Number.NEGATIVE_INFINITY, revisions: 0 }
    streams.set(stream, added)
    return added
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.flush(), ms)
  }

  /** While the database is away, callers do not wait for it: the oldest events are given up. */
  #shrink(): undefined {
    let given = 0
    while (this.#queuedBytes > QUEUE_BYTES && given < this.#queue.length - 1)
      this.#queuedBytes -= sizeOf(this.#queue[given++] as QueuedEvents)
    if (given > 0) this.#queue = this.#queue.slice(given)
    return undefined
  }

  #release(): void {
    if (this.#queuedBytes > RESUME_BYTES && !this.#options.contact.isAway) return
    for (const resume of this.#waiting.splice(0)) resume()
  }

  async #writeQueue(): Promise<void> {
    const { contact, database, log } = this.#options
    while ((this.#failed || this.#queue.length > 0) && !contact.isAway) {
      const batch = this.#failed ?? this.#nextBatch()
      this.#failed = batch
      try {
        await contact.run(() => database.transaction(sql => this.#write(sql, batch)))
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

  /** Takes about a batch from the queue. */
  #nextBatch(): JournalBatch {
    let [count, bytes] = [0, 0]
    while (count < this.#queue.length && bytes < BATCH_BYTES) bytes += sizeOf(this.#queue[count++] as QueuedEvents)
    const taken = this.#queue.splice(0, count)
    this.#queuedBytes -= bytes
    return gatherRows(taken, this.#limits.event)
  }

  async #write(sql: Sql, { drops, rows }: JournalBatch): Promise<void> {
    const { self, sealing } = this.#options
    const all = [...drops.values(), ...rows]
    const epochs = await ownedEpochs(sql, self(), [...new Set(all.map(({ record }) => record.id))])
    const isOwn = ({ record, epoch }: EventRow | QueuedEvents): boolean => epochs.get(record.id) === epoch
    for (const dropped of drops.values()) {
      if (!isOwn(dropped)) continue
      await deleteStream(sql, dropped.record.id, dropped.stream.name)
      forgetStream(dropped)
    }
    const own = rows.filter(isOwn)
    await insertEvents(
      sql,
      own.map(({ record: { id }, stream: { name: stream }, seq, revision, last, bytes, data }) => {
        const sealed = sealing.seal(placeOf(id, stream, seq, revision), encodeEvents(data))
        return { id, stream, seq, revision, last, bytes, data: sealed }
      }),
    )
    await this.#trim(sql, own)
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

const forgetStream = ({ record: { journal: sizes }, stream: { name } }: QueuedEvents): void => {
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
