import type { Log } from '../../telemetry/log.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { joinBuffers, type Message, readIncoming } from '../../wire/json-rpc.ts'
import { encodeLine } from '../../wire/ndjson.ts'
import type { Child, ChildHandler, ProcessExit } from '../process/child.ts'

/** Reads what a server writes. `gone` comes once and last. */
export interface PipeReader {
  message(message: Message): void
  gone(exit: ProcessExit): void
}

/** Reads and drops everything. */
export const DROP_ALL: PipeReader = { message: () => {}, gone: () => {} }

/** JSON-RPC with one child process, a message per line each way. Messages are kept while there is no reader. */
export class Pipe implements ChildHandler {
  readonly #log: Log
  readonly #onInvalidLine: (line: Buffer) => void
  readonly #kept: Message[] = []
  #lines = 0
  #invalidLines = 0
  #child: Child | undefined
  #reader: PipeReader | undefined
  #exit: ProcessExit | undefined

  private constructor(log: Log, onInvalidLine: (line: Buffer) => void) {
    this.#log = log
    this.#onInvalidLine = onInvalidLine
  }

  /** Rejects as `start` does. */
  static async open(
    log: Log,
    onInvalidLine: (line: Buffer) => void,
    start: (reader: ChildHandler) => Promise<Child>,
  ): Promise<Pipe> {
    const pipe = new Pipe(log, onInvalidLine)
    pipe.#child = await start(pipe)
    return pipe
  }

  get child(): Child {
    if (!this.#child) throw new Error('a pipe without a process')
    return this.#child
  }

  /** Lines read so far. */
  get lines(): number {
    return this.#lines
  }

  /** Lines read so far that were no messages. */
  get invalidLines(): number {
    return this.#invalidLines
  }

  /** From now on that reader gets the messages; undefined: they are kept for the next reader. */
  readBy(reader: PipeReader | undefined): void {
    this.#reader = reader
    for (const message of this.#kept.splice(0)) this.#take(message)
    if (this.#exit) this.#reader?.gone(this.#exit)
  }

  send(pieces: readonly Buffer[]): void {
    this.child.write(joinBuffers(encodeLine(pieces)))
  }

  line(line: Buffer): void {
    this.#lines++
    try {
      const incoming = readIncoming(line)
      // An invalid message with an id still answers a request.
      if (incoming.kind === 'invalid' && !incoming.id) this.#drop(line)
      else if (incoming.kind === 'batch') for (const message of incoming.messages) this.#take(message)
      else this.#take(incoming)
    } catch (error) {
      if (error instanceof JsonSyntaxError) this.#drop(line)
      else this.#log.error({ err: error }, 'reading a message failed') // a fault of the gateway; the next line is read
    }
  }

  exited(exit: ProcessExit): void {
    this.#exit = exit
    this.#reader?.gone(exit)
  }

  #take(message: Message): void {
    if (this.#reader) this.#reader.message(message)
    else this.#kept.push(message)
  }

  /** Some servers print a banner, or their logs, to stdout. */
  #drop(line: Buffer): void {
    this.#invalidLines++
    this.#onInvalidLine(line)
  }
}
