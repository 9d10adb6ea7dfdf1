import type { ServerResponse } from 'node:http'
import { commentBytes, eventPieces } from '../../wire/sse.ts'
import type { FrontContext } from '../http/front-request.ts'

interface Waiting {
  readonly pieces: readonly Buffer[]
  readonly bytes: number
  readonly merge: string | undefined
}

/** What there is only while the socket is full. */
interface Jam {
  readonly waiting: Waiting[]
  readonly caughtUp: (() => void)[]
  bytes: number
  stall: NodeJS.Timeout
}

const JOIN_BELOW = 16_384 // one small write is cheaper than several; a large one must not be copied

/** The events of one channel on their way into its socket. An idle one holds nothing. */
export class Outbox {
  readonly #response: ServerResponse
  readonly #house: FrontContext
  readonly owner: string // whose share its bytes count for
  #jam: Jam | undefined
  #isEnded = false

  constructor(response: ServerResponse, house: FrontContext, owner: string) {
    this.owner = owner
    this.#response = response
    this.#house = house
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#jam?.bytes ?? 0
  }

  /** More than a whole log waits for a reader that does not read. */
  get isOverrun(): boolean {
    const { streamLogBytes, streamLogEvents } = this.#house.limits
    return this.#jam !== undefined && (this.#jam.bytes > streamLogBytes || this.#jam.waiting.length > streamLogEvents)
  }

  /** Sends an event; a promise means that the reader is behind. One that waits gives way to a newer of its `merge`. */
  send(event: string, data: readonly Buffer[], merge?: string): void | Promise<void> {
    if (this.#isEnded) return
    const pieces = eventPieces({ event, data })
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
    if (this.#jam) this.#keep(this.#jam, { pieces, bytes, merge })
    else if (!this.#write(pieces, bytes)) this.#jam = this.#block()
    const jam = this.#jam
    if (jam) return new Promise(resolve => jam.caughtUp.push(resolve))
  }

  comment(): void {
    if (!this.#jam && !this.#isEnded && !this.#response.write(commentBytes)) this.#jam = this.#block()
  }

  /** Forgets what still waits. */
  discard(): void {
    if (!this.#jam) return
    this.#jam.waiting.length = 0
    this.#grow(this.#jam, -this.#jam.bytes)
  }

  /** Nothing follows: the stream ends when everything has been taken. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    if (!this.#jam) this.#response.end()
  }

  /** The socket is gone. */
  closed(): void {
    this.#isEnded = true
    this.discard()
    this.#clear()
  }

  #write(pieces: readonly Buffer[], bytes: number): boolean {
    if (bytes < JOIN_BELOW) return this.#response.write(Buffer.concat(pieces, bytes))
    let hasRoom = true
    this.#response.cork()
    for (const piece of pieces) hasRoom = this.#response.write(piece)
    this.#response.uncork()
    return hasRoom
  }

  #block(): Jam {
    this.#response.once('drain', () => this.#drain())
    return { waiting: [], caughtUp: [], bytes: 0, stall: this.#watch() }
  }

  #watch(): NodeJS.Timeout {
    return setTimeout(() => this.#response.destroy(), this.#house.limits.stallMs).unref()
  }

  #keep(jam: Jam, entry: Waiting): void {
    const at = entry.merge === undefined ? -1 : jam.waiting.findLastIndex(({ merge }) => merge === entry.merge)
    const before = at < 0 ? undefined : jam.waiting[at]
    if (before) jam.waiting[at] = entry
    else jam.waiting.push(entry)
    this.#grow(jam, entry.bytes - (before?.bytes ?? 0))
  }

  #drain(): void {
    const jam = this.#jam
    if (!jam) return
    clearTimeout(jam.stall)
    let hasRoom = true
    let taken = 0
    while (hasRoom && taken < jam.waiting.length) {
      const { pieces, bytes } = jam.waiting[taken++] as Waiting
      this.#grow(jam, -bytes)
      hasRoom = this.#write(pieces, bytes)
    }
    jam.waiting.splice(0, taken)
    if (hasRoom) return this.#clear()
    jam.stall = this.#watch()
    this.#response.once('drain', () => this.#drain())
  }

  #clear(): void {
    const jam = this.#jam
    if (!jam) return
    this.#jam = undefined
    clearTimeout(jam.stall)
    for (const resolve of jam.caughtUp) resolve()
    if (this.#isEnded) this.#response.end()
  }

  #grow(jam: Jam, bytes: number): void {
    jam.bytes += bytes
    this.#house.shelf.add(this, bytes)
  }
}
