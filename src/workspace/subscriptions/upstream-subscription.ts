import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import { ERRORS } from '../../protocol/errors.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { backoffMs } from '../../std/time.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'

const BACKOFF = { firstMs: 1000, longestMs: 30_000 }

interface SubscriptionHooks {
  /** The server acknowledged the subscription; `wasLost` if notifications may have been missed before. */
  readonly onListening: (acknowledged: Json, wasLost: boolean) => void
  readonly onLost: () => void
  readonly onFrame: (frame: Frame) => void | Promise<void>
}

/** One subscription to one upstream server on behalf of one listener. Reconnects with backoff when it ends. */
export class UpstreamSubscription {
  readonly member: Member
  readonly #exchange: Exchange
  readonly #hooks: SubscriptionHooks
  #abort: Abort | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  #wasLost = false
  #isListening = false
  #isOver = false
  #settle: () => void = () => {}
  /** Resolves when the first attempt has succeeded or failed. */
  readonly settled: Promise<void>

  constructor(member: Member, exchange: Exchange, hooks: SubscriptionHooks) {
    this.member = member
    this.#exchange = exchange
    this.#hooks = hooks
    this.settled = new Promise(resolve => {
      this.#settle = resolve
    })
  }

  start(): void {
    if (this.#isOver || this.#abort) return
    clearTimeout(this.#timer)
    if (!this.member.isUp()) return this.#retryLater(true)
    const abort = new Abort()
    this.#abort = abort
    this.member.bridged
      .open(this.#exchange.caller)
      .then(peer => {
        if (!abort.reason) peer.dispatch({ ...this.#exchange, signal: abort, sink: frame => this.#take(frame, abort) })
      })
      .catch(() => this.#ended(abort, true))
  }

  /** The server is back: reconnects at once. */
  reconnect(): void {
    this.#failures = 0
    this.start()
  }

  end(reason: AbortReason): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#stopListening()
    this.#abort?.abort(reason)
    this.#settle()
  }

  #take(frame: Frame, abort: Abort): void | Promise<void> {
    if (abort !== this.#abort || this.#isOver) return
    if (frame.kind === 'result') return this.#ended(abort, false)
    if (frame.kind === 'failure') return this.#ended(abort, true, frame.error.code === ERRORS.methodNotFound.code)
    if (frame.kind === 'notice' && frame.method === NOTIFICATIONS.acknowledged) return this.#acknowledged(frame.params)
    return this.#hooks.onFrame(frame)
  }

  #acknowledged(params: Json): void {
    this.#failures = 0
    this.#isListening = true
    const wasLost = this.#wasLost
    this.#wasLost = false
    this.#hooks.onListening(params, wasLost)
    this.#settle()
  }

  #ended(abort: Abort, isFailure: boolean, isUnsupported = false): void {
    if (abort !== this.#abort || this.#isOver) return
    this.#abort = undefined
    this.#stopListening()
    if (isUnsupported)
      this.#settle() // the server never sends notifications
    else this.#retryLater(isFailure)
  }

  #stopListening(): void {
    if (!this.#isListening) return
    this.#isListening = false
    this.#hooks.onLost()
  }

  #retryLater(isFailure: boolean): void {
    this.#wasLost ||= isFailure
    this.#settle()
    const failures = this.member.isUp() ? this.#failures++ : Number.POSITIVE_INFINITY
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.start(), backoffMs(BACKOFF, failures)).unref()
  }
}
