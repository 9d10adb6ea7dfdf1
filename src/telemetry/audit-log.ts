import { backoffMs } from '../std/time.ts'
import type { Log } from './log.ts'

/** Where audit events are written: a file, or stdout. What a failed `write` left is written first by the next one. */
export interface AuditTarget {
  write(lines: Buffer): Promise<void>
  close(): Promise<void>
}

/** A line that is copied from the bytes of its parts: to make a text of them takes several times as long. It ends with a newline. */
export interface AuditLine {
  readonly mostBytes: number
  /** Writes it at that place, and returns where it ends. */
  writeTo(bytes: Buffer, at: number): number
}

/** Counts of audit events, for `/metrics`. */
export interface AuditCounts {
  readonly written: number
  readonly dropped: number // the queue was full
  readonly failures: number // attempts to write that failed
}

/** Writes one event that is not a request. Fields that are undefined are left out. */
export type WriteAuditEvent = (event: string, fields: Readonly<Record<string, unknown>>) => void

const FLUSH_MS = 250 // a process that is killed loses the events of this time
const CHUNK_BYTES = 256 * 1024 // written as soon as it is full
const MOST_CHUNKS = 64 // 16 MiB
const MOST_BYTES_EACH = 3 // of a UTF-16 unit in UTF-8
const RETRY = { firstMs: 1000, longestMs: 30_000 }
const NOTHING = Buffer.alloc(0)

/**
 * A bounded queue of lines in front of a slow or failing target. Adding a line never waits and never fails. Lines are kept
 * as bytes outside the heap: as strings they would live long enough to cost more in garbage collection than all the rest.
 */
export class AuditLog {
  readonly #target: AuditTarget
  readonly #log: Log
  readonly #full: Buffer[] = [] // chunks
  #chunk: Buffer = NOTHING
  #spare: Buffer | undefined // a chunk that was written: new memory for each would cost as much as writing it
  #used = 0 // bytes of the chunk
  #queued = 0 // events
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #unsure = 0 // events that the target has taken, but not all of which are written
  #failuresInRow = 0
  #gap = 0 // events dropped since the last one written
  #isClosed = false
  readonly #counts = { written: 0, dropped: 0, failures: 0 }

  constructor(target: AuditTarget, log: Log) {
    this.#target = target
    this.#log = log
  }

  get counts(): AuditCounts {
    return this.#counts
  }

  /** Queues a line, which ends with a newline. */
  add(line: string | AuditLine): void {
    const most = typeof line === 'string' ? line.length * MOST_BYTES_EACH : line.mostBytes
    if (this.#used + most > this.#chunk.length && !this.#begin(most)) return this.#drop()
    if (typeof line === 'string') this.#used += this.#chunk.write(line, this.#used)
    else this.#used = line.writeTo(this.#chunk, this.#used)
    this.#queued++
    if (this.#timer === undefined && !this.#writing && this.#failuresInRow === 0)
      this.#timer = setTimeout(() => this.#flush(), FLUSH_MS).unref()
  }

  readonly event: WriteAuditEvent = (event, fields) => this.add(eventLine(event, fields))

  /** Writes everything that is queued. If the target fails once more, what is left is lost, and logged. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    await this.#writing
    this.#failuresInRow = 0
    this.#flush()
    await this.#writing
    this.#isClosed = true
    this.#chunk = NOTHING
    clearTimeout(this.#timer)
    const lost = this.#queued + this.#unsure
    if (lost > 0) this.#log.error({ events: lost }, 'audit events lost: they could not be written before the end')
    await this.#target.close().catch(() => {})
  }

  /** Begins a chunk for a line of that size, and has the one before written; false if too many wait. */
  #begin(bytes: number): boolean {
    if (this.#full.length >= MOST_CHUNKS || this.#isClosed) return false
    if (this.#used > 0) this.#full.push(this.#chunk.subarray(0, this.#used))
    this.#chunk = NOTHING
    this.#used = 0
    if (this.#full.length > 0 && this.#failuresInRow === 0) this.#flush() // takes all that is queued, so before the new chunk
    this.#chunk = bytes > CHUNK_BYTES ? Buffer.allocUnsafeSlow(bytes) : this.#takeChunk()
    return true
  }

  #takeChunk(): Buffer {
    const chunk = this.#spare ?? Buffer.allocUnsafeSlow(CHUNK_BYTES)
    this.#spare = undefined
    return chunk
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
    })
  }

  async #writeAll(): Promise<void> {
    try {
      if (this.#unsure > 0) await this.#write(NOTHING)
      while (this.#queued > 0) {
        const lines = this.#takeQueued()
        await this.#write(lines)
        if (lines.buffer.byteLength === CHUNK_BYTES) this.#spare = Buffer.from(lines.buffer)
      }
    } catch (error) {
      this.#failed(error as Error)
    }
  }

  /** The queue is empty afterwards. Its last event says how many had no place in it. */
  #takeQueued(): Buffer {
    const parts = [...this.#full.splice(0), this.#chunk.subarray(0, this.#used)]
    this.#chunk = NOTHING
    this.#used = 0
    this.#unsure = this.#queued
    this.#queued = 0
    if (this.#gap > 0) {
      this.#log.warn({ events: this.#gap }, 'audit events are missing: the queue was full')
      parts.push(Buffer.from(eventLine('gap', { dropped: this.#gap })))
      this.#gap = 0
      this.#unsure++
    }
    return parts.length === 1 ? (parts[0] ?? NOTHING) : Buffer.concat(parts)
  }

  async #write(lines: Buffer): Promise<void> {
    await this.#target.write(lines)
    this.#counts.written += this.#unsure
    this.#unsure = 0
    if (this.#failuresInRow > 0) this.#log.info({}, 'audit log is written again')
    this.#failuresInRow = 0
  }

  #failed(error: Error): void {
    this.#counts.failures++
    if (this.#failuresInRow === 0)
      this.#log.error({ reason: error.message }, 'audit log not written; calls go on, and writing is tried again')
    const waitMs = backoffMs(RETRY, this.#failuresInRow++)
    this.#timer = setTimeout(() => this.#flush(), waitMs).unref()
  }

  #drop(): void {
    this.#counts.dropped++
    if (++this.#gap === 1 && this.#failuresInRow === 0)
      this.#log.error({}, 'audit events dropped: they come faster than they can be written; calls go on')
  }
}

const eventLine = (event: string, fields: Readonly<Record<string, unknown>>): string =>
  `${JSON.stringify({ time: new Date().toISOString(), event, ...fields })}\n`

/** Writes lines to stdout, as fast as its reader takes them. */
export const stdoutTarget = (stdout: NodeJS.WritableStream = process.stdout): AuditTarget => {
  let rest = NOTHING
  return {
    write: lines =>
      new Promise((resolve, reject) => {
        rest = Buffer.concat([rest, lines])
        if (rest.length === 0) return resolve()
        stdout.write(rest, error => {
          if (error) return reject(error)
          rest = NOTHING
          resolve()
        })
      }),
    close: () => Promise.resolve(),
  }
}
