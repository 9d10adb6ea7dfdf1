import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import { ERRORS, NoAnswer, type RpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { backoffMs } from '../../std/time.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import { isForOwnSession } from '../routing/send.ts'

const BACKOFF = { firstMs: 1000, longestMs: 30_000 }
const STEADY_MS = 30_000 // a server that ends subscriptions sooner is asked less and less often

interface SubscriptionHooks {
  /** The server acknowledged the subscription; `wasLost` if notifications may have been missed before. */
  readonly onListening: (acknowledged: Json, wasLost: boolean) => void
  readonly onLost?: () => void
  /** The server has never acknowledged the subscription, and rejects it with an error of its own. */
  readonly onRejected?: (error: RpcError) => void
  readonly onFrame: (frame: Frame) => void | Promise<void>
}

/** One subscription to one upstream server on behalf of one listener. Reconnects with backoff when it ends. */
export class UpstreamSubscription {
  readonly member: Member
  readonly #exchange: Exchange
  readonly #hooks: SubscriptionHooks
  #abort: Abort | undefined
  #ended: Abort | undefined // of the request before: what layers below keep for it is released once another one is sent
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  #wasLost = false
  #listeningSince: number | undefined
  #hasListened = false
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
    if (!this.member.isUp()) return this.#retryLater()
    const abort = new Abort()
    this.#abort = abort
    this.#listen({ ...this.#exchange, signal: abort, sink: frame => this.#take(frame, abort) }).catch(() =>
      this.#onEnd(abort),
    )
  }

  /** The server is back: reconnects at once. */
  reconnect(): void {
    this.#failures = 0
    this.member.bridged.relisten?.()
    this.start()
  }

  end(reason: AbortReason): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#stopListening()
    this.#abort?.abort(reason)
    this.#release()
    this.#settle()
  }

  async #listen(exchange: Exchange): Promise<void> {
    const { bridged } = this.member
    if (bridged.listen) return bridged.listen(exchange)
    const peer = await bridged.open(exchange.caller)
    if (!exchange.signal.reason || isForOwnSession(exchange)) peer.dispatch(exchange)
  }

  #take(frame: Frame, abort: Abort): void | Promise<void> {
    if (abort !== this.#abort || this.#isOver) return
    if (frame.kind === 'result') return this.#onEnd(abort)
    if (frame.kind === 'failure') return this.#onEnd(abort, frame.error)
    if (frame.kind === 'notice' && frame.method === NOTIFICATIONS.acknowledged) return this.#acknowledged(frame.params)
    return this.#hooks.onFrame(frame)
  }

  #acknowledged(params: Json): void {
    this.#release()
    this.#listeningSince = Date.now()
    this.#hasListened = true
    const wasLost = this.#wasLost
    this.#wasLost = false
    this.#hooks.onListening(params, wasLost)
    this.#settle()
  }

  #onEnd(abort: Abort, error?: RpcError): void {
    if (abort !== this.#abort || this.#isOver) return
    this.#release()
    this.#ended = abort
    this.#abort = undefined
    this.#stopListening()
    if (error && !this.#hasListened && !(error instanceof NoAnswer)) this.#hooks.onRejected?.(error)
    if (this.#isOver) return
    if (error?.code === ERRORS.methodNotFound.code)
      this.#settle() // the server never sends notifications
    else this.#retryLater()
  }

  #release(): void {
    this.#ended?.abort({ kind: 'gone' })
    this.#ended = undefined
  }

  #stopListening(): void {
    if (this.#listeningSince === undefined) return
    if (Date.now() - this.#listeningSince >= STEADY_MS) this.#failures = 0
    this.#listeningSince = undefined
    this.#hooks.onLost?.()
  }

  #retryLater(): void {
    this.#wasLost = true
    this.#settle()
    const failures = this.member.isUp() ? this.#failures++ : Number.POSITIVE_INFINITY
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.start(), backoffMs(BACKOFF, failures)).unref()
  }
}
