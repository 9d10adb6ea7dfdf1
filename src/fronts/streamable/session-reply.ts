import type { Abort } from '../../protocol/cancellation.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { streamTo, wantsEvents } from '../http/response.ts'
import { Answers, type Outcome } from '../sessions/answers.ts'
import type { Reply } from '../sessions/receive.ts'
import type { EventLog } from '../streams/event-log.ts'
import type { Session } from './session.ts'

const COMMIT_MS = 100 // a call that takes longer becomes a stream, so that a dropped one can be resumed
const TAKEN_MS = 30_000 // a finished stream whose last byte went to a live socket

/**
 * The answer to one POST of a legacy session, for one request or a batch of them: JSON while nothing else
 * has to be said, an event stream afterwards. The stream outlives its socket.
 */
export class SessionReply implements Reply {
  readonly #house: FrontContext
  readonly #session: Session
  readonly #visit: FrontRequest
  readonly #calls: Abort[] = []
  readonly #answers: Answers
  readonly #commit: NodeJS.Timeout | undefined
  readonly #isEvents: boolean
  #stream: EventLog | undefined
  #orphan: NodeJS.Timeout | undefined
  #stopKeepAlive: () => void = () => {}

  constructor(house: FrontContext, session: Session, visit: FrontRequest, isBatch: boolean) {
    this.#house = house
    this.#session = session
    this.#visit = visit
    this.#answers = new Answers(isBatch)
    this.#isEvents = wantsEvents(visit, session.caller.revision)
    if (visit.takesSse && !this.#isEvents) this.#commit = setTimeout(() => this.#open(), COMMIT_MS)
    visit.response.on('close', () => this.#wait())
  }

  get takesMore(): boolean {
    return this.#visit.takesSse
  }

  expect(call: Abort): number {
    this.#calls.push(call)
    return this.#answers.expect()
  }

  say(pieces: Buffer[], merge?: string): void | Promise<void> {
    if (!this.takesMore) return
    return this.#open().append(pieces, { merge })
  }

  /** Gives the outcome of one request; the last one ends the reply. */
  respond(index: number, outcome: Outcome): void {
    this.#answers.give(index, outcome)
    const isLast = this.#answers.isComplete
    if (this.#stream) this.#append(outcome)
    else if (!isLast) return
    else if (this.#isEvents) this.#answers.sendAsEvents(this.#visit.response)
    else if (this.#visit.takesJson) this.#answers.sendTo(this.#visit.response)
    else this.#open()
    if (isLast) this.#finish()
  }

  /** The socket is gone. The calls run on for a client that comes back, but not for ever. */
  #wait(): void {
    if (this.#answers.isComplete) return
    this.#orphan = setTimeout(() => this.#giveUp(), this.#house.limits.orphanMs)
    this.#orphan.unref()
  }

  #giveUp(): void {
    if (this.#stream?.hasReader) return this.#wait()
    for (const [index, call] of this.#calls.entries()) if (!this.#answers.has(index)) call.abort({ kind: 'expired' })
  }

  #append(outcome: Outcome): void {
    if (outcome !== 'none') void this.#stream?.append(outcome)
  }

  /** From here on this is an event stream. */
  #open(): EventLog {
    if (this.#stream) return this.#stream
    clearTimeout(this.#commit)
    const stream = this.#session.open()
    this.#stream = stream
    this.#stopKeepAlive = this.#house.ticker.keepAlive(stream)
    this.#session.prime(stream)
    for (const outcome of this.#answers.known) this.#append(outcome)
    const { response } = this.#visit
    if (!response.destroyed) streamTo(response, stream, { stallMs: this.#house.limits.stallMs, sequence: 0 })
    return stream
  }

  #finish(): void {
    clearTimeout(this.#commit)
    clearTimeout(this.#orphan)
    this.#stopKeepAlive()
    const stream = this.#stream
    const session = this.#session // not this: the shelf would keep the socket with it
    if (!stream) return
    const lifetimeMs = stream.hasReader ? TAKEN_MS : this.#house.limits.orphanMs
    stream.finish()
    this.#house.shelf.shelve(stream, lifetimeMs, () => session.forget(stream))
  }
}
