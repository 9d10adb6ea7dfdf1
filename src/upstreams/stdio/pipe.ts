import type { Log } from '../../telemetry/log.ts'
import { JsonSyntaxError } from '../../wire/json/scan.ts'
import { join, type Message, readIncoming } from '../../wire/json-rpc.ts'
import { linePieces } from '../../wire/ndjson.ts'
import type { Child, ChildHandler, ProcessExit } from '../process/child.ts'

/** Reads what a server writes. `gone` comes once and last. */
export interface PipeReader {
  message(message: Message): void
  gone(exit: ProcessExit): void
}

/** JSON-RPC with one process, a message per line each way. What comes while nobody reads is kept. */
export class Pipe implements ChildHandler {
  lines = 0 // read so far
  noise = 0 // of them, those that are no messages
  readonly #log: Log
  readonly #ignore: (line: Buffer) => void
  readonly #kept: Message[] = []
  #child: Child | undefined
  #reader: PipeReader | undefined
  #exit: ProcessExit | undefined

  private constructor(log: Log, ignore: (line: Buffer) => void) {
    this.#log = log
    this.#ignore = ignore
  }

  /** Rejects as `start` does; `ignore` hears of lines that are no messages. */
  static async open(
    log: Log,
    ignore: (line: Buffer) => void,
    start: (reader: ChildHandler) => Promise<Child>,
  ): Promise<Pipe> {
    const pipe = new Pipe(log, ignore)
    pipe.#child = await start(pipe)
    return pipe
  }

  get child(): Child {
    if (!this.#child) throw new Error('a pipe without a process')
    return this.#child
  }

  /** From now on this one reads; undefined: nobody, until somebody does. */
  readBy(reader: PipeReader | undefined): void {
    this.#reader = reader
    for (const message of this.#kept.splice(0)) this.#take(message)
    if (this.#exit) this.#reader?.gone(this.#exit)
  }

  send(pieces: readonly Buffer[]): void {
    this.child.write(join(linePieces(pieces)))
  }

  line(line: Buffer): void {
    this.lines++
    try {
      const incoming = readIncoming(line)
      // With an id it answers something, however badly.
      if (incoming.kind === 'invalid' && !incoming.id) this.#drop(line)
      else if (incoming.kind === 'batch') for (const message of incoming.messages) this.#take(message)
      else this.#take(incoming)
    } catch (error) {
      if (error instanceof JsonSyntaxError) this.#drop(line)
      else this.#log.error({ err: error }, 'reading a message failed') // a fault of ours; the next line is another
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

  /** Some servers print a banner, or their logs, where only messages belong. */
  #drop(line: Buffer): void {
    this.noise++
    this.#ignore(line)
  }
}
