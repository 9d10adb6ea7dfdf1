import { NEVER } from '../../protocol/cancellation.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import type { SharedCall } from './shared-call.ts'

const GREETING_MS = 2000 // in which a question is about the session itself
const SETTLE_MS = 500 // servers that want roots ask right after the handshake
const FENCE_MS = 500 // for a ping, which even an error answers

/** Whether the sessions of one server ask for roots right after the handshake; undefined until one has shown it. */
export interface GreetingHabit {
  asks: boolean | undefined
}

/** What a fresh session needs before it is used: a moment for a question of its own, and a ping before its first list. */
export class Settling {
  readonly #dispatch: Dispatch
  readonly #habit: GreetingHabit
  readonly #openedAt = Date.now()
  #isFenced = false

  constructor(dispatch: Dispatch, habit: GreetingHabit) {
    this.#dispatch = dispatch
    this.#habit = habit
  }

  /** Whether what it asks now may be about the session rather than about a call. */
  get isGreeting(): boolean {
    return Date.now() <= this.#openedAt + GREETING_MS
  }

  /** The server has asked something. */
  asked(method: string): void {
    if (method === 'roots/list' && this.isGreeting) this.#habit.asks = true
  }

  /** A fresh session may have a question of its own; a call that needs the answer must not overtake it. */
  settle(call: SharedCall, run: () => void): void {
    const rest = this.#openedAt + SETTLE_MS - Date.now()
    const mayAsk = this.#habit.asks !== false && call.canBeAsked && call.exchange.caller.capabilities.has('roots')
    if (rest <= 0 || !mayAsk) return call.onceAnswered(run)
    const timer = setTimeout(() => {
      this.#habit.asks ??= false
      call.onceAnswered(run)
    }, rest)
    call.upstream.onAbort(() => clearTimeout(timer))
  }

  /** Servers offer some tools only once they have dealt with the handshake: a ping that is answered tells that they have. */
  fence(exchange: Exchange, run: () => void): void {
    if (this.#isFenced) return run()
    let isOver = false
    const go = (): void => {
      if (isOver) return
      isOver = true
      this.#isFenced = true
      clearTimeout(timer)
      run()
    }
    const timer = setTimeout(go, FENCE_MS)
    this.#dispatch({ ...exchange, method: 'ping', params: Json.empty, signal: NEVER, sink: go })
  }
}
