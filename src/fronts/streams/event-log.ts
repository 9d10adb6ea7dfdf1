import type { Limits } from '../../config/snapshot.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Json } from '../../wire/json/json.ts'
import { COMMENT_BYTES, encodeEvent, encodeRetry } from '../../wire/sse.ts'
import type { StreamRetention } from './stream-retention.ts'

/**
 * The events of one stream: those its reader has not taken yet, and those a client that reconnects may ask for.
 * A reader is a cursor into the log, and the log is bounded.
 */
export class EventLog {
  readonly key: string | undefined
  readonly owner: string
  slot = -1 // among those whose bytes the retention may drop
  readonly #context: LogContext
  readonly #journal: StreamJournal | undefined
  #entries: LogEntry[] = []
  #first = 0 // sequence number of entries[0]
  #bytes = 0
  #cursor = 0 // sequence number of the next event for the reader
  #reader: StreamReader | undefined
  readonly #replaced = new Set<StreamReader>() // readers that keep an idle socket until the stream ends
  #hasTaken = false // the reader has taken an event
  #leftAt: number | undefined // when the last reader left
  #isBlocked = false
  #isFinished = false
  #retryMs: number | undefined // the reader is to come back after this time, once it has taken everything
  #whenDrained: (() => void)[] = []

  /**
   * With a key, events carry ids `<key>.<sequence>` and are kept for a reconnect; without, they are dropped once taken.
   * A journal gets each event, and each that replaces one.
   */
  constructor(key: string | undefined, context: LogContext, owner: string, journal?: StreamJournal) {
    this.key = key
    this.owner = owner
    this.#context = context
    this.#journal = journal
  }

  get bytes(): number {
    return this.#bytes
  }

  get isFinished(): boolean {
    return this.#isFinished
  }

  get hasReader(): boolean {
    return this.#reader !== undefined
  }

  /** Milliseconds without a reader; Infinity if there has never been one. */
  get unreadMs(): number {
    if (this.#reader) return 0
    return this.#leftAt === undefined ? Number.POSITIVE_INFINITY : Date.now() - this.#leftAt
  }

  /** The sequence number of the next event. */
  get next(): number {
    return this.#first + this.#entries.length
  }

  /** True while the log holds every event after `sequence`. */
  holds(sequence: number): boolean {
    return sequence >= this.#first - 1 && sequence < this.next
  }

  /** Adds an event; it replaces one of the same `merge` that is not taken yet. A promise means that the reader is behind. */
  append(data: readonly Buffer[], merge?: string): void | Promise<void> {
    const waiting = merge === undefined ? -1 : this.#findWaiting(merge)
    const storing = this.#journal?.(waiting >= 0 ? this.#first + waiting : this.next, data)
    if (waiting >= 0) this.#replace(waiting, data, merge)
    else {
      if (this.#isOverrun()) this.#detachReader()?.destroy()
      const entry = this.#encode(this.next, data, merge)
      this.#entries.push(entry)
      this.#resize(entry.bytes)
    }
    this.#pump()
    this.trim()
    if (!this.#reader || !this.#isBlocked) return storing
    const drained = new Promise<void>(resolve => this.#whenDrained.push(resolve))
    return storing ? storing.then(() => drained) : drained
  }

  /** Gives the stream to a reader, from `sequence` on; the previous reader keeps an idle socket. */
  attach(reader: StreamReader, sequence: number = this.#cursor): void {
    this.#unblock()
    if (this.#reader) this.#replaced.add(this.#reader)
    this.#reader = reader
    this.#hasTaken = false
    this.#retryMs = undefined
    this.#cursor = Math.max(sequence, this.#first)
    this.#pump()
  }

  /** The reader's socket has room again. */
  drained(reader: StreamReader): void {
    if (reader !== this.#reader) return
    this.#isBlocked = false
    this.#pump()
    this.trim()
  }

  /** The reader's socket has closed; events it may have missed stay. */
  detach(reader: StreamReader): void {
    this.#replaced.delete(reader)
    if (reader === this.#reader) this.#detachReader()
  }

  keepAlive(): void {
    for (const reader of this.#replaced) reader.write([COMMENT_BYTES]) // otherwise a dead socket would go unnoticed
    if (this.#reader && !this.#isBlocked) this.#isBlocked = !this.#reader.write([COMMENT_BYTES])
  }

  /**
   * Ends the reader's response once it has taken everything; it should ask for the rest of the stream after `retryMs`. A
   * response without an event stays open: SDK v1 resumes after the last event of the response that ended, and not before it.
   */
  closeReader(retryMs: number): void {
    if (!this.#reader || (!this.#hasTaken && this.#cursor === this.next)) return
    this.#retryMs = retryMs
    this.#pump()
  }

  /** No event will follow: the reader's response ends once it has taken everything. */
  finish(): void {
    this.#isFinished = true
    this.#pump()
  }

  /** Drops all events and ends the reader's response. */
  clear(): void {
    this.#first = this.next
    this.#entries = []
    this.#resize(-this.#bytes)
    this.#endReaders()
  }

  #endReaders(): void {
    this.#detachReader()?.end()
    for (const reader of this.#replaced) reader.end()
    this.#replaced.clear()
  }

  #encode(sequence: number, data: readonly Buffer[], merge: string | undefined): LogEntry {
    const pieces = encodeLogEvent(this.key, sequence, data)
    return { pieces, bytes: pieces.reduce((sum, piece) => sum + piece.length, 0), merge }
  }

  #findWaiting(merge: string): number {
    for (let i = this.#entries.length - 1; i >= this.#cursor - this.#first; i--)
      if (this.#entries[i]?.merge === merge) return i
    return -1
  }

  #replace(index: number, data: readonly Buffer[], merge: string | undefined): void {
    const entry = this.#encode(this.#first + index, data, merge)
    const before = this.#entries[index] as LogEntry
    this.#entries[index] = entry // before the resize, which may trim this log
    this.#resize(entry.bytes - before.bytes)
  }

  #resize(change: number): void {
    this.#bytes += change
    this.#context.retention.add(this, change)
  }

  #pump(): void {
    const reader = this.#reader
    if (!reader) return
    while (!this.#isBlocked && this.#cursor < this.next) {
      const entry = this.#entries[this.#cursor - this.#first] as LogEntry
      this.#cursor++
      this.#hasTaken = true
      this.#isBlocked = !reader.write(entry.pieces)
    }
    if (this.#cursor < this.next) return
    if (this.#isFinished) this.#endReaders()
    else if (this.#retryMs !== undefined) {
      reader.write([encodeRetry(this.#retryMs)])
      this.#detachReader()
      reader.end()
    } else if (!this.#isBlocked) this.#unblock()
  }

  #unblock(): void {
    const waiting = this.#whenDrained
    this.#whenDrained = []
    this.#isBlocked = false
    for (const resolve of waiting) resolve()
  }

  #detachReader(): StreamReader | undefined {
    const reader = this.#reader
    if (reader) this.#leftAt = Date.now()
    this.#reader = undefined
    this.#unblock()
    return reader
  }

  /** True if the reader is blocked and more waits for it than a whole log may hold. */
  #isOverrun(): boolean {
    if (!this.#reader || !this.#isBlocked) return false
    let waiting = 0
    for (let i = this.#cursor - this.#first; i < this.#entries.length; i++)
      waiting += (this.#entries[i] as LogEntry).bytes
    const { streamLogBytes, streamLogEvents } = this.#context.limits
    return waiting > streamLogBytes || this.next - this.#cursor > streamLogEvents
  }

  /** Drops events beyond the bounds, oldest first, but none that the reader has yet to take. */
  trim(): void {
    const { limits, retention } = this.#context
    let drop = 0
    while (drop < this.#entries.length) {
      const isFull =
        this.key === undefined ||
        this.#bytes > limits.streamLogBytes ||
        this.#entries.length - drop > limits.streamLogEvents ||
        retention.isOverLimit(this.owner)
      const isTaken = this.#first + drop < this.#cursor
      // The newest event stays, however large: it is the one a client that lost its stream reconnects for.
      const isNewest = this.key !== undefined && drop === this.#entries.length - 1
      const isKept = this.#reader ? !isTaken : isNewest && !isTaken && !retention.isOverLimit(this.owner)
      if (!isFull || isKept) break
      const { bytes } = this.#entries[drop] as LogEntry
      this.#resize(-bytes)
      drop++
    }
    if (drop === 0) return
    this.#entries.splice(0, drop)
    this.#first += drop
    this.#cursor = Math.max(this.#cursor, this.#first)
  }
}

/** Stores the data of an event, or of one that replaces it; a promise means that the store is behind. */
export type StreamJournal = (sequence: number, data: readonly Buffer[]) => undefined | Promise<void>

/** The bytes of an event with its id, if its stream has a key. Without data it only tells the id. */
export const encodeLogEvent = (key: string | undefined, sequence: number, data: readonly Buffer[]): Buffer[] =>
  encodeEvent({
    ...(data.some(({ length }) => length > 0) && { event: 'message' }),
    ...(key !== undefined && { id: `${key}.${sequence}` }),
    data,
  })

/** The name under which a newer notification replaces one that is not read yet; undefined if each one counts. */
export const mergeKey = (method: string, params: Json): string | undefined => {
  if (method === NOTIFICATIONS.progress) return `progress ${params.get('progressToken')}`
  if (method === NOTIFICATIONS.resourceUpdated) return `updated ${params.get('uri')}`
  return method.endsWith('/list_changed') ? method : undefined
}

/** An HTTP response, seen as narrowly as a log needs it. */
export interface StreamReader {
  /** False: the socket is full; `EventLog.drained` is called when it has room again. */
  write(pieces: readonly Buffer[]): boolean
  end(): void
  destroy(): void
}

interface LogEntry {
  readonly pieces: readonly Buffer[]
  readonly bytes: number
  readonly merge: string | undefined
}

/** The bounds of a log, and the retention that counts its bytes. */
interface LogContext {
  readonly limits: Pick<Limits, 'streamLogBytes' | 'streamLogEvents'>
  readonly retention: StreamRetention
}
