import { Abort } from '../../protocol/cancellation.ts'
import type { Caller, Frame } from '../../protocol/exchange.ts'
import type { Level } from '../../protocol/methods.ts'
import type { Policy } from '../../protocol/policy.ts'
import { Json } from '../../wire/json/json.ts'
import { notificationPieces } from '../../wire/json-rpc.ts'
import type { FrontContext } from '../http/front-request.ts'
import { mergeName } from '../streams/merge-name.ts'
import { InFlight } from './in-flight.ts'
import { PendingQuestions } from './pending-questions.ts'
import { Subscribed } from './subscribed.ts'

const STANDING_AGAIN_MS = 1000
// Legacy servers log before `logging/setLevel`, modern ones only for requests that carry a level.
const DEFAULT_LEVEL: Level = 'info'
const LISTEN_TO_ALL = Json.of({
  notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
})

/** One legacy client as long as we know it: who it is, its calls, what it was asked, what it hears unasked. */
export abstract class ClientSession {
  readonly asks = new PendingQuestions()
  readonly running = new InFlight()
  readonly subscribed = new Subscribed()
  caller: Caller

  protected readonly house: FrontContext
  #standing: Abort | undefined
  #over: Abort | undefined // a standing exchange the far side ended; whoever keeps something for it must hear the end
  #stoodAt = 0
  #isEnded = false

  constructor(caller: Caller, house: FrontContext) {
    this.caller = caller.logLevel === undefined ? { ...caller, logLevel: DEFAULT_LEVEL } : caller
    this.house = house
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** True once there has been a standing exchange. */
  protected get hasBegun(): boolean {
    return this.#stoodAt > 0
  }

  /** Says something that belongs to no call; a promise means that the client is behind. */
  abstract say(pieces: Buffer[], merge?: string): void | Promise<void>

  /** Takes what the token of the latest request allows: a principal may have several, and what they allow changes. */
  allow(policy: Policy | undefined): void {
    if (this.caller.policy !== policy) this.caller = { ...this.caller, policy }
  }

  setLevel(logLevel: Level): void {
    this.caller = { ...this.caller, logLevel }
  }

  /** Opens the standing exchange, on which everything arrives that belongs to no call. Opens it again if it ended. */
  begin(): void {
    if (this.#standing || this.#isEnded || Date.now() - this.#stoodAt < STANDING_AGAIN_MS) return
    const standing = new Abort()
    this.#standing = standing
    this.#stoodAt = Date.now()
    this.house.dispatch({
      kind: 'request',
      method: 'subscriptions/listen',
      params: LISTEN_TO_ALL,
      caller: this.caller,
      signal: standing,
      sink: frame => this.#unasked(frame, standing),
    })
  }

  /** The client has said who it is, perhaps after it had begun to talk: what it hears unasked begins anew. */
  protected beginAnew(caller: Caller): void {
    this.caller = caller
    this.#standing?.abort({ kind: 'gone' })
    this.#standing = undefined
    this.#stoodAt = 0
  }

  /** Cancels everything; false if that has been done. */
  protected stop(): boolean {
    if (this.#isEnded) return false
    this.#isEnded = true
    this.running.abortAll()
    this.#standing?.abort({ kind: 'gone' })
    this.#over?.abort({ kind: 'gone' })
    this.asks.abandon()
    return true
  }

  #unasked(frame: Frame, standing: Abort): void | Promise<void> {
    if (this.#isEnded || standing !== this.#standing) return
    if (frame.kind === 'result' || frame.kind === 'failure') {
      this.#standing = undefined
      this.#over = standing
      if (frame.kind === 'failure') this.house.log.debug({ error: frame.error }, 'standing exchange ended')
      return
    }
    if (frame.kind === 'question') return this.asks.ask(frame, pieces => this.say(pieces))
    if (frame.method === 'notifications/subscriptions/acknowledged') return
    return this.say(notificationPieces(frame.method, frame.params), mergeName(frame.method, frame.params))
  }
}
