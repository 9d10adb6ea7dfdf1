import { READ_BYTES, STATE_LIMITS } from './limits.ts'
import type { JournalEvent } from './state-store.ts'

interface StoredRecord {
  readonly streams: Map<string, StoredStream>
  bytes: number
}

interface StoredStream {
  readonly record: StoredRecord
  readonly events: JournalEvent[]
  bytes: number
}

/** The events of a whole cluster, in memory. */
export class MemoryJournal {
  readonly #most: number
  readonly #records = new Map<string, StoredRecord>()
  readonly #streams = new Set<StoredStream>() // the oldest first
  bytes = 0

  /** Keeps at most `most` bytes in all. */
  constructor(most: number) {
    this.#most = most
  }

  append(key: string, name: string, seq: number, pieces: readonly Buffer[]): void {
    const record = this.#records.get(key) ?? { streams: new Map<string, StoredStream>(), bytes: 0 }
    this.#records.set(key, record)
    const stream = record.streams.get(name) ?? { record, events: [], bytes: 0 }
    record.streams.set(name, stream)
    this.#streams.add(stream)
    const data = Buffer.concat(pieces)
    if (data.length <= STATE_LIMITS.event) this.#put(stream, { seq, data })
    this.#shrink([stream], () => stream.bytes > STATE_LIMITS.stream)
    this.#shrink(record.streams.values(), () => record.bytes > STATE_LIMITS.session)
    this.#shrink(this.#streams, () => this.bytes > this.#most)
  }

  read(key: string, name: string, after: number, limit: number): JournalEvent[] {
    const events = this.#records.get(key)?.streams.get(name)?.events ?? []
    const found: JournalEvent[] = []
    let bytes = 0
    for (const event of events) {
      if (found.length >= limit || bytes >= READ_BYTES) break
      if (event.seq <= after) continue
      found.push(event)
      bytes += event.data.length
    }
    return found
  }

  drop(key: string, name: string): void {
    const record = this.#records.get(key)
    const stream = record?.streams.get(name)
    if (!record || !stream) return
    this.#forget(stream)
    record.streams.delete(name)
    if (record.streams.size === 0) this.#records.delete(key)
  }

  remove(key: string): void {
    for (const stream of this.#records.get(key)?.streams.values() ?? []) this.#forget(stream)
    this.#records.delete(key)
  }

  /** An event with the number of a stored one replaces it. */
  #put(stream: StoredStream, event: JournalEvent): void {
    const { events } = stream
    const isNew = events.length === 0 || event.seq > (events.at(-1)?.seq ?? 0)
    const at = isNew ? events.length : events.findIndex(({ seq }) => seq >= event.seq)
    const replaced = events[at]?.seq === event.seq ? 1 : 0
    const [former] = events.splice(at, replaced, event)
    this.#count(stream, event.data.length - (former?.data.length ?? 0))
  }

  /** Drops the first events of the first streams while there is too much. */
  #shrink(streams: Iterable<StoredStream>, isTooMuch: () => boolean): void {
    if (!isTooMuch()) return
    for (const stream of streams)
      while (stream.events.length > 0 && isTooMuch()) this.#count(stream, -(stream.events.shift()?.data.length ?? 0))
  }

  #count(stream: StoredStream, by: number): void {
    stream.bytes += by
    stream.record.bytes += by
    this.bytes += by
  }

  #forget(stream: StoredStream): void {
    this.#count(stream, -stream.bytes)
    this.#streams.delete(stream)
  }
}
