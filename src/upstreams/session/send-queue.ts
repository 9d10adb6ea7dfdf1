import { backoffMs, within } from '../../std/time.ts'
import type { Log } from '../../telemetry/log.ts'
import type { SendOutcome } from './gateway-request.ts'

/** Sends one message that has no answer; calls `done` once the server has taken or refused it. */
type Post = (pieces: Buffer[], what: string, done: (outcome: SendOutcome) => void) => void

interface QueuedMessage {
  readonly pieces: Buffer[]
  readonly what: string
  readonly bytes: number
  readonly onLost: (() => void) | undefined
}

interface SendQueueOptions {
  readonly post: Post
  readonly log: Log
  readonly most?: number // under way at a time: each takes a connection
  readonly mostBytes?: number // of queued messages
}

const MOST = 16
const MOST_BYTES = 16 * 1024 * 1024
const LAST_MS = 500 // for the server to take the last messages
/** A replica that stops takes no connections for up to 10 s, and then another one serves its sessions. */
const BACKOFF = { firstMs: 250, longestMs: 2000 }
const MOST_ATTEMPTS = 9
const MOST_SENT = 64 // messages at the head of the list that were sent, before they are removed from it

/** The messages one session sends without waiting for an answer: a few at a time, started in order. */
export class SendQueue {
  readonly #options: Required<SendQueueOptions>
  #messages: QueuedMessage[] = []
  #next = 0 // index of the first message that has not been sent
  #underWay = 0
  #bytes = 0
  #isClosed = false
  #clears = 0 // what was put before the last one is not sent again
  #settled: () => void = () => {} // called when nothing is under way
  #isDropping = false // since the server last took a message: the log has one line for that

  constructor({ post, log, most = MOST, mostBytes = MOST_BYTES }: SendQueueOptions) {
    this.#options = { post, log, most, mostBytes }
  }

  /** How many messages the server has not taken yet. */
  get size(): number {
    return this.#underWay + this.#messages.length - this.#next
  }

  /** With `onLost`, the message is sent again where the server was not available, and reported if it was not taken. */
  put(pieces: Buffer[], what: string, onLost?: () => void): void {
    if (this.#isClosed) return
    const { most, mostBytes, log } = this.#options
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
    if (this.#underWay >= most && this.#bytes + bytes > mostBytes) {
      if (!this.#isDropping) log.warn({ what }, 'dropped a message: the server does not take what it is sent')
      this.#isDropping = true
      return onLost?.()
    }
    this.#bytes += bytes
    this.#messages.push({ pieces, what, bytes, onLost })
    this.#send()
  }

  /** Drops what has not been sent. */
  clear(): void {
    this.#clears++
    this.#empty()
  }

  #empty(): void {
    this.#messages = []
    this.#next = this.#bytes = 0
  }

  /** Drops what has not been sent; resolves when the server has taken the rest, such as the last cancellation. */
  close(): Promise<void> {
    this.clear()
    this.#isClosed = true
    if (this.#underWay === 0) return Promise.resolve()
    return within(LAST_MS, new Promise<void>(resolve => (this.#settled = resolve)), () => {})
  }

  #send(): void {
    const { most } = this.#options
    while (this.#underWay < most) {
      const message = this.#messages[this.#next]
      if (!message) return this.#empty()
      this.#next++
      this.#bytes -= message.bytes
      if (this.#next > MOST_SENT && this.#next * 2 > this.#messages.length) this.#removeSent()
      this.#underWay++
      this.#attempt(message, 0, this.#clears)
    }
  }

  #attempt(message: QueuedMessage, attempt: number, clears: number): void {
    const { pieces, what, onLost } = message
    let isOver = false
    this.#options.post(pieces, what, outcome => {
      if (isOver) return
      isOver = true
      const isCurrent = clears === this.#clears
      if (outcome !== 'taken' && onLost && isCurrent) {
        if (outcome !== 'refused' && attempt + 1 < MOST_ATTEMPTS)
          return this.#attemptLater(message, attempt + 1, clears)
        onLost()
      }
      this.#underWay--
      this.#isDropping = false
      if (this.#underWay === 0) this.#settled()
      this.#send()
    })
  }

  #attemptLater(message: QueuedMessage, attempt: number, clears: number): void {
    setTimeout(
      () => {
        if (clears === this.#clears) return this.#attempt(message, attempt, clears)
        this.#underWay--
        if (this.#underWay === 0) this.#settled()
        this.#send()
      },
      backoffMs(BACKOFF, attempt - 1),
    ).unref()
  }

  /** A queue that is never empty must not keep every message it ever had. */
  #removeSent(): void {
    this.#messages.splice(0, this.#next)
    this.#next = 0
  }
}
