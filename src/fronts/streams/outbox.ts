import type { Writable } from 'node:stream'
import { encodeLine } from '../../wire/ndjson.ts'
import { COMMENT_BYTES, encodeEvent } from '../../wire/sse.ts'
import type { FrontContext } from '../http/front-request.ts'

const JOIN_BELOW = 16_384 // bytes: one small write is cheaper than several; a large one must not be copied

/** Writes messages to one output; they wait while it is full. An idle outbox holds nothing. */
abstract class Outbox {
  protected readonly output: Writable
  readonly #stallMs: number | undefined
  #backlog: Backlog | undefined
  #isEnded = false

  /** An output that takes nothing for `stallMs` is destroyed. */
  constructor(output: Writable, stallMs?: number) {
    this.output = output
    this.#stallMs = stallMs
  }

  /** Bytes that wait. */
  get bytes(): number {
    return this.#backlog?.bytes ?? 0
  }

  /** Messages that wait. */
  protected get count(): number {
    return this.#backlog?.waiting.length ?? 0
  }

  protected get isBlocked(): boolean {
    return this.#backlog !== undefined
  }

  /** Called after `bytes` has changed. */
  protected abstract resized(change: number): void

  /** Writes a message; it replaces one of the same `merge` that still waits. A promise resolves when nothing waits. */
  protected write(pieces: readonly Buffer[], merge?: string): void | Promise<void> {
    if (this.#isEnded || this.output.destroyed) return
    let bytes = 0
    for (const piece of pieces) bytes += piece.length
    if (this.#backlog) this.#enqueue(this.#backlog, { pieces, bytes, merge })
    else if (!this.#writeNow(pieces, bytes)) this.#backlog = this.#block()
    const backlog = this.#backlog
    if (backlog) return new Promise(resolve => backlog.whenDrained.push(resolve))
  }

  /** Drops the messages that wait. */
  discard(): void {
    if (!this.#backlog) return
    this.#backlog.waiting.length = 0
    this.#resize(this.#backlog, -this.#backlog.bytes)
  }

  /** Writes the messages that wait without regard to backpressure. */
  protected flush(): void {
    for (const { pieces, bytes } of this.#backlog?.waiting.splice(0) ?? []) this.#writeNow(pieces, bytes)
  }

  /** Accepts no further message; ends the output once everything is written. */
  end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    if (!this.#backlog) this.output.end()
  }

  /** Must be called when the output has closed. */
  closed(): void {
    this.#isEnded = true
    this.discard()
    this.#unblock()
  }

  #writeNow(pieces: readonly Buffer[], bytes: number): boolean {
    return bytes < JOIN_BELOW ? this.output.write(Buffer.concat(pieces, bytes)) : writeCorked(this.output, pieces)
  }

  #block(): Backlog {
    this.output.once('drain', () => this.#drain())
    return { waiting: [], whenDrained: [], bytes: 0, stall: this.#startStallTimer() }
  }

  #startStallTimer(): NodeJS.Timeout | undefined {
    if (this.#stallMs === undefined) return undefined
    return setTimeout(() => this.output.destroy(), this.#stallMs).unref()
  }

  #enqueue(backlog: Backlog, entry: Waiting): void {
    const { waiting } = backlog
    const at = entry.merge === undefined ? -1 : waiting.findLastIndex(({ merge }) => merge === entry.merge)
    const replaced = at < 0 ? undefined : waiting[at]
    if (replaced) waiting[at] = entry
    else waiting.push(entry)
    this.#resize(backlog, entry.bytes - (replaced?.bytes ?? 0))
  }

  #drain(): void {
    const backlog = this.#backlog
    if (!backlog) return
    clearTimeout(backlog.stall)
    let hasRoom = true
    let written = 0
    while (hasRoom && written < backlog.waiting.length) {
      const { pieces, bytes } = backlog.waiting[written++] as Waiting
      this.#resize(backlog, -bytes)
      hasRoom = this.#writeNow(pieces, bytes)
    }
    backlog.waiting.splice(0, written)
    if (hasRoom) return this.#unblock()
    backlog.stall = this.#startStallTimer()
    this.output.once('drain', () => this.#drain())
  }

  #unblock(): void {
    const backlog = this.#backlog
    if (!backlog) return
    this.#backlog = undefined
    clearTimeout(backlog.stall)
    for (const resolve of backlog.whenDrained) resolve()
    if (this.#isEnded) this.output.end()
  }

  #resize(backlog: Backlog, change: number): void {
    backlog.bytes += change
    this.resized(change)
  }
}

interface Waiting {
  readonly pieces: readonly Buffer[]
  readonly bytes: number
  readonly merge: string | undefined
}

/** Exists only while the output is full. */
interface Backlog {
  readonly waiting: Waiting[]
  readonly whenDrained: (() => void)[]
  bytes: number
  stall: NodeJS.Timeout | undefined
}

/** Writes several buffers as one; false if the output is full. */
export const writeCorked = (output: Writable, pieces: readonly Buffer[]): boolean => {
  let hasRoom = true
  output.cork()
  for (const piece of pieces) hasRoom = output.write(piece)
  output.uncork()
  return hasRoom
}

/** Sends server-sent events on one HTTP response; those that wait count for the quota of their owner. */
export class EventOutbox extends Outbox {
  readonly owner: string
  readonly #context: FrontContext

  constructor(response: Writable, context: FrontContext, owner: string) {
    super(response, context.limits.stallMs)
    this.owner = owner
    this.#context = context
  }

  /** True if more waits than a whole stream log may hold. */
  get isOverrun(): boolean {
    const { streamLogBytes, streamLogEvents } = this.#context.limits
    return this.bytes > streamLogBytes || this.count > streamLogEvents
  }

  /** Sends an event; it replaces one of the same `merge` that still waits. A promise means that the client is behind. */
  send(event: string, data: readonly Buffer[], merge?: string): void | Promise<void> {
    return this.write(encodeEvent({ event, data }), merge)
  }

  keepAlive(): void {
    if (!this.isBlocked) void this.write([COMMENT_BYTES])
  }

  protected override resized(change: number): void {
    this.#context.retention.add(this, change)
  }
}

/** Sends lines to a pipe that every request of a client shares. A client that leaves too much unread is cut off. */
export class LineOutbox extends Outbox {
  readonly #maxBytes: number

  constructor(output: Writable, maxBytes: number) {
    super(output)
    this.#maxBytes = maxBytes
  }

  /** A promise means that the client is behind. */
  send(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.write(encodeLine(pieces), merge)
  }

  /** Resolves when everything is written. */
  finish(): Promise<void> {
    return new Promise(resolve => {
      if (this.output.destroyed) return resolve()
      this.flush()
      this.output.once('close', () => resolve())
      this.output.write('', () => resolve())
    })
  }

  protected override resized(): void {
    if (this.bytes > this.#maxBytes) this.output.destroy()
  }
}
