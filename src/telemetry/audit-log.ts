import { backoffMs } from '../std/time.ts'
import type { Log } from './log.ts'

/** Where audit events are written: a file, or stdout. What a failed `write` left is written first by the next one. */
export interface AuditTarget {
  write(lines: Buffer): Promise<void>
  close(): Promise<void>
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
const FLUSH_CHARACTERS = 256 * 1024
const MAX_QUEUED = 16 * 1024 * 1024 // characters
const RETRY = { firstMs: 1000, longestMs: 30_000 }
const NOTHING = Buffer.alloc(0)

/** A bounded queue of lines in front of a slow or failing target. Adding a line never waits and never fails. */
export class AuditLog {
  readonly #target: AuditTarget
  readonly #log: Log
  #lines: string[] = []
  #characters = 0
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
  add(line: string): void {
    if (this.#characters + line.length > MAX_QUEUED || this.#isClosed) return this.#drop()
    this.#lines.push(line)
    this.#characters += line.length
    if (this.#writing || this.#failuresInRow > 0) return
    if (this.#characters >= FLUSH_CHARACTERS) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS).unref()
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
    clearTimeout(this.#timer)
    const lost = this.#lines.length + this.#unsure
    if (lost > 0) this.#log.error({ events: lost }, 'audit events lost: they could not be written before the end')
    await this.#target.close().catch(() => {})
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
      while (this.#lines.length > 0) {
        await this.#write(this.#takeQueued())
      }
    } catch (error) {
      this.#failed(error as Error)
    }
  }

  /** The queue is empty afterwards. Its last event says how many had no place in it. */
  #takeQueued(): Buffer {
    const lines = this.#lines
    this.#lines = []
    this.#characters = 0
    if (this.#gap > 0) {
      this.#log.warn({ events: this.#gap }, 'audit events are missing: the queue was full')
      lines.push(eventLine('gap', { dropped: this.#gap }))
      this.#gap = 0
    }
    this.#unsure = lines.length
    return Buffer.from(lines.join(''))
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
