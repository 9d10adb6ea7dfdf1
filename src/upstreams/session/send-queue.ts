import type { Log } from '../../telemetry/log.ts'

/** Sends one message that has no answer, and says when the server has taken or refused it. */
type Post = (pieces: Buffer[], what: string, done: () => void) => void

interface Letter {
  readonly pieces: Buffer[]
  readonly what: string
  readonly bytes: number
}

interface Options {
  readonly post: Post
  readonly log: Log
  readonly most?: number // under way at a time: each takes a connection
  readonly mostBytes?: number // that wait for their turn
}

const MOST = 16
const MOST_BYTES = 16 * 1024 * 1024
const SENT = 64 // letters at the head of the list, before they are taken off it

/** What one session says without waiting for an answer: a few messages at a time, begun in their order. */
export class SendQueue {
  readonly #options: Required<Options>
  #letters: Letter[] = []
  #next = 0 // the first of them that has not been sent
  #underWay = 0
  #bytes = 0
  #isClosed = false
  #isDropping = false // since it last took something: one line in the log is enough

  constructor({ post, log, most = MOST, mostBytes = MOST_BYTES }: Options) {
    this.#options = { post, log, most, mostBytes }
  }

  /** How many messages the server has not taken yet. */
  get size(): number {
    return this.#underWay + this.#letters.length - this.#next
  }

  put(pieces: Buffer[], what: string): void {
    if (this.#isClosed) return
    const { most, mostBytes, log } = this.#options
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0)
    if (this.#underWay >= most && this.#bytes + bytes > mostBytes) {
      if (!this.#isDropping) log.warn({ what }, 'dropped a message: the server does not take what it is sent')
      this.#isDropping = true
      return
    }
    this.#bytes += bytes
    this.#letters.push({ pieces, what, bytes })
    this.#send()
  }

  /** Forgets what has not been sent, for now or for good: nobody is there to take it. */
  clear(isForGood = false): void {
    this.#letters = []
    this.#next = this.#bytes = 0
    this.#isClosed ||= isForGood
  }

  /** A box that is never empty must not keep all that ever was in it. */
  #forgetSent(): void {
    this.#letters.splice(0, this.#next)
    this.#next = 0
  }

  #send(): void {
    const { post, most } = this.#options
    while (this.#underWay < most) {
      const letter = this.#letters[this.#next]
      if (!letter) return this.clear()
      this.#next++
      this.#bytes -= letter.bytes
      if (this.#next > SENT && this.#next * 2 > this.#letters.length) this.#forgetSent()
      this.#underWay++
      let isOver = false
      post(letter.pieces, letter.what, () => {
        if (isOver) return
        isOver = true
        this.#underWay--
        this.#isDropping = false
        this.#send()
      })
    }
  }
}
