import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'

const METHOD_NOT_FOUND = -32601
const SHORTEST_MS = 1000
const LONGEST_MS = 30_000

interface Hooks {
  /** It listens, to this; `wasLost` where something may have been missed before. */
  readonly listening: (honoured: Json, wasLost: boolean) => void
  /** It hears nothing more for now. */
  readonly lost: () => void
  readonly heard: (frame: Frame) => void | Promise<void>
}

/** What one member says unasked to one listener. A member that falls silent is listened to again when it is back. */
export class UpstreamSubscription {
  readonly member: Member
  readonly #exchange: Exchange
  readonly #hooks: Hooks
  #abort: Abort | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  #wasLost = false
  #isListening = false
  #isOver = false
  #settle: () => void = () => {}
  /** The first attempt has ended, one way or the other. */
  readonly settled: Promise<void>

  constructor(member: Member, exchange: Exchange, hooks: Hooks) {
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
    if (!this.member.isUp()) return this.#again(true)
    const abort = new Abort()
    this.#abort = abort
    this.member.bridged
      .open(this.#exchange.caller)
      .then(peer => {
        if (!abort.reason) peer.dispatch({ ...this.#exchange, signal: abort, sink: frame => this.#take(frame, abort) })
      })
      .catch(() => this.#ended(abort, true))
  }

  /** The member is back: no need to wait any longer. */
  wake(): void {
    this.#failures = 0
    this.start()
  }

  end(reason: AbortReason): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#silence()
    this.#abort?.abort(reason)
    this.#settle()
  }

  #take(frame: Frame, abort: Abort): void | Promise<void> {
    if (abort !== this.#abort || this.#isOver) return
    if (frame.kind === 'result') return this.#ended(abort, false)
    if (frame.kind === 'failure') return this.#ended(abort, true, frame.error.code === METHOD_NOT_FOUND)
    if (frame.kind === 'notice' && frame.method === NOTIFICATIONS.acknowledged) return this.#acknowledged(frame.params)
    return this.#hooks.heard(frame)
  }

  #acknowledged(params: Json): void {
    this.#failures = 0
    this.#isListening = true
    const wasLost = this.#wasLost
    this.#wasLost = false
    this.#hooks.listening(params, wasLost)
    this.#settle()
  }

  #ended(abort: Abort, isFailure: boolean, isMute = false): void {
    if (abort !== this.#abort || this.#isOver) return
    this.#abort = undefined
    this.#silence()
    if (isMute)
      this.#settle() // it has no such thing, and will say nothing
    else this.#again(isFailure)
  }

  #silence(): void {
    if (!this.#isListening) return
    this.#isListening = false
    this.#hooks.lost()
  }

  #again(isFailure: boolean): void {
    this.#wasLost ||= isFailure
    this.#settle()
    const longest = this.member.isUp() ? Math.min(LONGEST_MS, SHORTEST_MS * 2 ** this.#failures++) : LONGEST_MS
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.start(), longest * (0.5 + Math.random() / 2))
    this.#timer.unref()
  }
}
