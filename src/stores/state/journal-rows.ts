import type { HeldRecord, HeldStream } from './held-records.ts'
import type { JournalEvent } from './state-store.ts'

/** What waits to be written: events of a stream, or that the stream is to be dropped (without data). */
export interface QueuedEvents {
  readonly record: HeldRecord
  readonly epoch: number
  readonly stream: HeldStream
  readonly seq: number
  readonly data: readonly Buffer[] | undefined
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
  readonly data: Buffer[]
}

/** What one transaction writes: streams to drop first, then rows. */
export interface JournalBatch {
  readonly drops: ReadonlyMap<HeldStream, QueuedEvents>
  readonly rows: readonly EventRow[]
}

const ROW_BYTES = 256 * 1024
const ROW_OVERHEAD = 128 // counted for each row, so that many small ones reach the limits, too

/** Joins what was queued into few rows, without events of more than `mostBytes`. */
export const gatherRows = (queue: readonly QueuedEvents[], mostBytes: number): JournalBatch => {
  const drops = new Map<HeldStream, QueuedEvents>()
  const rows = new Map<HeldStream, EventRow[]>()
  for (const queued of queue) {
    const { record, epoch, stream } = queued
    if (!queued.data) {
      drops.set(stream, queued)
      rows.delete(stream)
      continue
    }
    for (const [at, event] of queued.data.entries()) {
      if (event.length > mostBytes) continue
      const seq = queued.seq + at
      const ofStream = rows.get(stream) ?? []
      const row = ofStream.at(-1)
      const isSame = row !== undefined && row.epoch === epoch
      if (isSame && seq >= row.seq && seq <= row.last) {
        const [former] = row.data.splice(seq - row.seq, 1, event)
        row.bytes += event.length - (former?.length ?? 0)
      } else if (isSame && row.revision === 0 && row.last === seq - 1 && row.bytes + event.length <= ROW_BYTES) {
        row.last = seq
        row.bytes += event.length
        row.data.push(event)
      } else {
        const revision = seq > stream.last ? 0 : ++stream.revisions
        const bytes = event.length + ROW_OVERHEAD
        ofStream.push({ record, epoch, stream, seq, revision, last: seq, bytes, data: [event] })
        rows.set(stream, ofStream)
      }
      stream.last = Math.max(stream.last, seq)
    }
  }
  return { drops, rows: [...rows.values()].flat() }
}

/** The events of a row, each after its length. */
export const encodeEvents = (data: readonly Buffer[]): Buffer => {
  let size = 0
  for (const { length } of data) size += 4 + length
  const encoded = Buffer.allocUnsafe(size)
  let at = 0
  for (const event of data) {
    at = encoded.writeUInt32BE(event.length, at)
    at += event.copy(encoded, at)
  }
  return encoded
}

export const decodeEvents = (seq: number, encoded: Buffer): JournalEvent[] => {
  const events: JournalEvent[] = []
  for (let at = 0; at + 4 <= encoded.length; ) {
    const end = at + 4 + encoded.readUInt32BE(at)
    events.push({ seq: seq + events.length, data: encoded.subarray(at + 4, end) })
    at = end
  }
  return events
}
