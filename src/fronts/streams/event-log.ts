import { commentBytes, eventPieces } from '../../wire/sse.ts'
import type { StreamRetention } from './stream-retention.ts'

/** Where the bytes of a stream go: an HTTP response, seen as narrowly as a log needs it. */
export interface Reader {
  /** False: the socket is full; `onDrain` is called when there is room again. */
  write(pieces: readonly Buffer[]): boolean
  end(): void
  /** The other side takes nothing and must go. */
  destroy(): void
}

interface Entry {
  readonly pieces: readonly Buffer[]
  readonly bytes: number
  readonly merge: string | undefined
}

interface Bounds {
  readonly streamLogBytes: number
  readonly streamLogEvents: number
}

interface EventOptions {
  /** Takes the place of an event of the same name that nobody took yet. */
  readonly merge?: string | undefined
}

/**
 * The events of one stream: what a reader has not taken yet, and what one that comes back may ask for.
 * A reader is a cursor, so that a slow one costs nothing but the log, and the log is bounded.
 */
export class EventLog {
  readonly key: string | undefined
  readonly owner: string
  readonly #bounds: Bounds
  readonly #shelf: StreamRetention
  #entries: Entry[] = []
  #first = 0 // sequence number of entries[0]
  #bytes = 0
  #cursor = 0 // sequence number of the next event for the reader
  #reader: Reader | undefined
  readonly #replaced = new Set<Reader>() // have an idle socket until the stream ends
  #isBlocked = false
  #isFinished = false
  #caughtUp: (() => void)[] = []

  /** With a key, events carry ids `<key>.<sequence>` and stay for a reader that comes back; without, they go once taken. */
  constructor(key: string | undefined, bounds: Bounds, shelf: StreamRetention, owner: string) {
    this.key = key
    this.owner = owner
    this.#bounds = bounds
    this.#shelf = shelf
  }

  /** Bytes it holds now. */
  get bytes(): number {
    return this.#bytes
  }

  get isFinished(): boolean {
    return this.#isFinished
  }

  get hasReader(): boolean {
    return this.#reader !== undefined
  }

  /** The sequence number the next event will get. */
  get next(): number {
    return this.#first + this.#entries.length
  }

  /** True while every event after `sequence` is still here. */
  holds(sequence: number): boolean {
    return sequence >= this.#first - 1 && sequence < this.next
  }

  /** Adds an event; a promise means that the reader is behind. */
  append(data: readonly Buffer[], { merge }: EventOptions = {}): void | Promise<void> {
    const waiting = merge === undefined ? -1 : this.#findWaiting(merge)
    if (waiting >= 0) this.#replace(waiting, data, merge)
    else {
      if (this.#isOverrun()) this.#drop()
      this.#add(this.#encode(this.next, data, merge))
    }
    this.#pump()
    this.trim()
    if (this.#reader && this.#isBlocked) return new Promise(resolve => this.#caughtUp.push(resolve))
  }

  /** Gives the stream to a reader, from `sequence` on; whoever had it keeps an idle socket. */
  attach(reader: Reader, sequence: number = this.#cursor): void {
    this.#release()
    if (this.#reader) this.#replaced.add(this.#reader)
    this.#reader = reader
    this.#cursor = Math.max(sequence, this.#first)
    this.#isBlocked = false
    this.#pump()
  }

  /** The reader's socket has room again. */
  drained(reader: Reader): void {
    if (reader !== this.#reader) return
    this.#isBlocked = false
    this.#pump()
    this.trim()
  }

  /** The reader is gone; what it may have missed stays. */
  detach(reader: Reader): void {
    this.#replaced.delete(reader)
    if (reader !== this.#reader) return
    this.#reader = undefined
    this.#release()
  }

  keepAlive(): void {
    for (const reader of this.#replaced) reader.write([commentBytes]) // or nobody would see that it is dead
    if (this.#reader && !this.#isBlocked) this.#isBlocked = !this.#reader.write([commentBytes])
  }

  /** No event will follow: the reader is sent home once it has taken everything. */
  finish(): void {
    this.#isFinished = true
    this.#pump()
  }

  /** Forgets everything and sends the reader home. */
  clear(): void {
    this.#first = this.next
    this.#entries = []
    this.#grow(-this.#bytes)
    const reader = this.#reader
    this.#reader = undefined
    this.#release()
    reader?.end()
    this.#dismiss()
  }

  #dismiss(): void {
    for (const reader of this.#replaced) reader.end()
    this.#replaced.clear()
  }

  #encode(sequence: number, data: readonly Buffer[], merge: string | undefined): Entry {
    const pieces = eventPieces({
      ...(data.length > 0 && { event: 'message' }),
      ...(this.key !== undefined && { id: `${this.key}.${sequence}` }),
      data,
    })
    return { pieces, bytes: pieces.reduce((sum, piece) => sum + piece.length, 0), merge }
  }

  #add(entry: Entry): void {
    this.#entries.push(entry)
    this.#grow(entry.bytes)
  }

  #findWaiting(merge: string): number {
    for (let i = this.#entries.length - 1; i >= this.#cursor - this.#first; i--)
      if (this.#entries[i]?.merge === merge) return i
    return -1
  }

  #replace(index: number, data: readonly Buffer[], merge: string | undefined): void {
    const entry = this.#encode(this.#first + index, data, merge)
    const before = this.#entries[index] as Entry
    this.#entries[index] = entry // first: growing may trim this log
    this.#grow(entry.bytes - before.bytes)
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    this.#shelf.add(this, bytes)
  }

  #pump(): void {
    const reader = this.#reader
    if (!reader) return
    while (!this.#isBlocked && this.#cursor < this.next) {
      const entry = this.#entries[this.#cursor - this.#first] as Entry
      this.#cursor++
      this.#isBlocked = !reader.write(entry.pieces)
    }
    if (this.#cursor < this.next) return
    if (this.#isFinished) {
      this.#reader = undefined
      this.#release()
      reader.end()
      this.#dismiss()
    } else if (!this.#isBlocked) this.#release()
  }

  #release(): void {
    const waiting = this.#caughtUp
    this.#caughtUp = []
    this.#isBlocked = false
    for (const resolve of waiting) resolve()
  }

  /** More than a whole log waits for a reader that does not read. */
  #isOverrun(): boolean {
    if (!this.#reader || !this.#isBlocked) return false
    let waiting = 0
    for (let i = this.#cursor - this.#first; i < this.#entries.length; i++) waiting += (this.#entries[i] as Entry).bytes
    return waiting > this.#bounds.streamLogBytes || this.next - this.#cursor > this.#bounds.streamLogEvents
  }

  #drop(): void {
    const reader = this.#reader
    this.#reader = undefined
    this.#release()
    reader?.destroy()
  }

  /** Drops what is beyond the bounds, oldest first; what a reader has yet to take stays. */
  trim(): void {
    const { streamLogBytes, streamLogEvents } = this.#bounds
    let drop = 0
    while (drop < this.#entries.length) {
      const isFull =
        this.key === undefined ||
        this.#bytes > streamLogBytes ||
        this.#entries.length - drop > streamLogEvents ||
        this.#shelf.isSpent(this.owner)
      const isTaken = this.#first + drop < this.#cursor
      // However large, the newest is what a client that lost its stream comes back for.
      const isNewest = this.key !== undefined && drop === this.#entries.length - 1
      const isKept = this.#reader ? !isTaken : isNewest && !isTaken && !this.#shelf.isSpent(this.owner)
      if (!isFull || isKept) break
      const { bytes } = this.#entries[drop] as Entry
      this.#grow(-bytes)
      drop++
    }
    if (drop === 0) return
    this.#entries.splice(0, drop)
    this.#first += drop
    this.#cursor = Math.max(this.#cursor, this.#first)
  }
}
