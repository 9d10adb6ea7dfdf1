import type { ServerResponse } from 'node:http'
import { PRIVATE_HEADERS, SSE_HEADERS } from '../fronts/http/response.ts'
import type { FeedEvents } from './api/events.ts'

export type FeedKind = keyof FeedEvents

const FLUSH_MS = 25 // events of this time are one write
const KEEP_ALIVE_MS = 15_000
const MOST_BYTES = 256 * 1024 // that wait for a slow reader
const START = 'retry: 2000\n\n' // a browser connects again after that many milliseconds

/** An event as it is sent. */
export const encodeFeedEvent = <K extends FeedKind>(kind: K, data: FeedEvents[K]): string =>
  `event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`

/**
 * One reader of the events. What a slow reader does not take is dropped, and counted in an event `dropped` once it reads
 * again. Of the status only the latest waits.
 */
export class FeedListener {
  readonly #response: ServerResponse
  readonly #keepAlive: NodeJS.Timeout
  readonly #dropped = new Map<FeedKind, number>()
  #status: string | undefined
  #waiting: string[] = []
  #waitingBytes = 0
  #timer: NodeJS.Timeout | undefined

  constructor(response: ServerResponse) {
    this.#response = response
    response.writeHead(200, { ...SSE_HEADERS, ...PRIVATE_HEADERS })
    response.write(START)
    this.#keepAlive = setInterval(() => {
      if (!response.writableNeedDrain) response.write(':\n\n')
    }, KEEP_ALIVE_MS).unref()
    response.on('drain', () => this.#schedule())
  }

  send(kind: FeedKind, event: string): void {
    if (kind === 'status') this.#status = event
    else if (this.#waitingBytes + event.length > MOST_BYTES) this.#dropped.set(kind, (this.#dropped.get(kind) ?? 0) + 1)
    else {
      this.#waiting.push(event)
      this.#waitingBytes += event.length
    }
    this.#schedule()
  }

  /** Ends the response: the gateway stops. */
  end(): void {
    this.close()
    this.#response.end()
  }

  close(): void {
    clearInterval(this.#keepAlive)
    clearTimeout(this.#timer)
    this.#waiting = []
  }

  #schedule(): void {
    this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS).unref()
  }

  #flush(): void {
    this.#timer = undefined
    if (this.#response.writableNeedDrain || this.#response.destroyed) return
    const dropped = [...this.#dropped].map(([kind, count]) => encodeFeedEvent('dropped', { kind, count }))
    const text = [this.#status ?? '', ...this.#waiting, ...dropped].join('')
    this.#dropped.clear()
    this.#status = undefined
    this.#waiting = []
    this.#waitingBytes = 0
    if (text !== '') this.#response.write(text)
  }
}
