import type { Writable } from 'node:stream'
import { linePieces } from '../../wire/ndjson.ts'

interface Waiting {
  line: Buffer
  readonly merge: string | undefined
}

/** Lines on their way out of a pipe that all conversations share; a slow reader makes them wait, never wait for one. */
export class PipeOutbox {
  readonly #output: Writable
  readonly #most: number
  readonly #waiting: Waiting[] = []
  #caughtUp: (() => void)[] = []
  #bytes = 0
  #isFull = false

  /** More than `most` bytes unread means that nobody reads any more: the pipe is closed. */
  constructor(output: Writable, most: number) {
    this.#output = output
    this.#most = most
    output.on('drain', () => this.#drain())
  }

  /** A promise means that the reader is behind. */
  send(pieces: Buffer[], merge?: string): void | Promise<void> {
    if (this.#output.destroyed) return
    const line = Buffer.concat(linePieces(pieces))
    if (!this.#isFull) this.#isFull = !this.#output.write(line)
    else this.#keep(line, merge)
    if (this.#isFull) return new Promise(resolve => this.#caughtUp.push(resolve))
  }

  /** Settles when everything has been written. */
  end(): Promise<void> {
    return new Promise(resolve => {
      if (this.#output.destroyed) return resolve()
      for (const { line } of this.#waiting.splice(0)) this.#output.write(line)
      this.#output.once('close', () => resolve())
      this.#output.write('', () => resolve())
    })
  }

  #keep(line: Buffer, merge: string | undefined): void {
    const known = merge === undefined ? undefined : this.#waiting.find(waiting => waiting.merge === merge)
    this.#bytes += line.length - (known?.line.length ?? 0)
    if (known) known.line = line
    else this.#waiting.push({ line, merge })
    if (this.#bytes > this.#most) this.#output.destroy()
  }

  #drain(): void {
    this.#isFull = false
    while (!this.#isFull) {
      const next = this.#waiting.shift()
      if (!next) break
      this.#bytes -= next.line.length
      this.#isFull = !this.#output.write(next.line)
    }
    if (this.#isFull) return
    const caughtUp = this.#caughtUp
    this.#caughtUp = []
    for (const resolve of caughtUp) resolve()
  }
}
