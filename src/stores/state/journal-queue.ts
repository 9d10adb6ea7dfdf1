import type { HeldRecord } from './held-records.ts'
import { sizeOf } from './journal-rows.ts'

/** A stream of this replica. */
export interface HeldStream {
  readonly name: string // as it is stored
  last: number // the highest number of an event
  revisions: number // how often events were replaced
  readonly queued: EventRow[] // the last one takes further events
  isStored: boolean // false: no row of it has left the queue
}

/** Consecutive events of one stream: one row, sealed once. */
export interface EventRow {
  readonly record: HeldRecord
  readonly epoch: number
  readonly stream: HeldStream
  readonly seq: number
  /** 0, or higher if the row replaces events of rows with a lower one. */
  readonly revision: number
  last: number
  bytes: number
  readonly events: (readonly Buffer[])[] // each in pieces
}

/** A stream to be deleted from the database. */
export type DroppedStream = Pick<EventRow, 'record' | 'epoch' | 'stream'>

/** What one transaction writes: streams to drop first, then rows. */
export interface JournalBatch {
  readonly drops: readonly DroppedStream[]
  readonly rows: readonly EventRow[]
}

const ROW_BYTES = 256 * 1024 // as counted in the queue, so that a row of small events has few thousand
const ROW_OVERHEAD = 128 // counted for each row, so that many small ones reach the limits, too
const DROP_BYTES = 64
const EVENT_BYTES = 64 // of the queue itself

const queuedBytes = ({ bytes, events }: EventRow): number => bytes + events.length * EVENT_BYTES

/** What waits to be written. Events join the row of their stream as they come, so that nothing is gathered later. */
export class JournalQueue {
  readonly #mostBytes: number
  readonly #drops: DroppedStream[] = []
  readonly #rows = new Set<EventRow>() // the oldest first
  #bytes = 0

  /** Events of more than `mostBytes` are left out. */
  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0 && this.#drops.length === 0
  }

  append(record: HeldRecord, epoch: number, stream: HeldStream, seq: number, pieces: readonly Buffer[]): void {
    const size = sizeOf(pieces)
    if (size > this.#mostBytes) return
    const row = stream.queued.at(-1)
    const isSame = row !== undefined && row.epoch === epoch
    if (isSame && seq >= row.seq && seq <= row.last) return this.#replace(row, seq - row.seq, pieces, size)
    if (isSame && row.revision === 0 && row.last === seq - 1 && queuedBytes(row) + size <= ROW_BYTES) {
      row.last = seq
      row.bytes += size
      row.events.push(pieces)
      this.#bytes += size + EVENT_BYTES
    } else {
      const revision = seq > stream.last ? 0 : ++stream.revisions
      const added = { record, epoch, stream, seq, revision, last: seq, bytes: size + ROW_OVERHEAD, events: [pieces] }
      stream.queued.push(added)
      this.#rows.add(added)
      this.#bytes += queuedBytes(added)
    }
    if (seq > stream.last) stream.last = seq
  }

  /** Forgets the rows of a stream, and deletes those that the database may have. */
  drop(record: HeldRecord, epoch: number, stream: HeldStream): void {
    for (const row of stream.queued.splice(0)) this.#forget(row)
    if (!stream.isStored) return
    this.#drops.push({ record, epoch, stream })
    this.#bytes += DROP_BYTES
  }

  /** Takes about `most` bytes, the oldest first. */
  take(most: number): JournalBatch {
    const drops = this.#drops.splice(0, Math.ceil(most / DROP_BYTES))
    let bytes = drops.length * DROP_BYTES
    this.#bytes -= bytes
    const rows: EventRow[] = []
    for (const row of this.#rows) {
      if (bytes >= most) break
      bytes += queuedBytes(row)
      row.stream.isStored = true
      row.stream.queued.shift()
      this.#forget(row)
      rows.push(row)
    }
    return { drops, rows }
  }

  /** Gives up the oldest rows but the last, until at most `most` bytes are left. */
  shrink(most: number): void {
    for (const row of this.#rows) {
      if (this.#bytes <= most || this.#rows.size === 1) return
      row.stream.queued.shift()
      this.#forget(row)
    }
  }

  #replace(row: EventRow, at: number, pieces: readonly Buffer[], size: number): void {
    const change = size - sizeOf(row.events[at] ?? [])
    row.events[at] = pieces
    row.bytes += change
    this.#bytes += change
  }

  #forget(row: EventRow): void {
    this.#rows.delete(row)
    this.#bytes -= queuedBytes(row)
  }
}
