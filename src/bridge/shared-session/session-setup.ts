import { NEVER } from '../../protocol/cancellation.ts'
import { ERRORS } from '../../protocol/errors.ts'
import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { isLogSeverity, LOG_SEVERITIES, type LogSeverity } from '../../protocol/methods.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import type { SharedCall } from './shared-call.ts'

const FRESH_MS = 2000 // questions before that may be about the session
const ROOTS_MS = 500 // servers that need roots ask right after the handshake
const PING_MS = 500 // even an error is an answer

/** Whether the sessions of one server ask for roots right after the handshake; undefined until one has shown it. */
export class RootsHabit {
  #asks: boolean | undefined

  get asks(): boolean | undefined {
    return this.#asks
  }

  record(asks: boolean): void {
    this.#asks = asks
  }
}

/** What a session needs before a call is sent: the roots of the client, a ping before its first list, a log level. */
export class SessionSetup {
  readonly #dispatch: Dispatch
  readonly #rootsHabit: RootsHabit
  readonly #openedAt = Date.now()
  #isPinged = false
  #level: LogSeverity | undefined
  #requestedLevel: LogSeverity | undefined // the most verbose that was ever requested
  #hasNoLevels = false

  constructor(dispatch: Dispatch, rootsHabit: RootsHabit) {
    this.#dispatch = dispatch
    this.#rootsHabit = rootsHabit
  }

  /** Whether a question now may be about the session rather than about a call. */
  get isFresh(): boolean {
    return Date.now() <= this.#openedAt + FRESH_MS
  }

  /** The server has asked a question. */
  asked(method: string): void {
    if (method === 'roots/list' && this.isFresh) this.#rootsHabit.record(true)
  }

  /** Calls `send` when the session is ready for that call. */
  prepare(call: SharedCall<unknown>, send: () => void): void {
    const { exchange } = call
    const isList = exchange.method.endsWith('/list')
    // The level last: a session of one caller ends when no request is pending.
    this.#awaitRoots(call, () => this.#ensureLevel(exchange, isList ? () => this.#pingFirst(exchange, send) : send))
  }

  /** A fresh session may ask for roots; a call that needs the answer must not overtake that. */
  #awaitRoots(call: SharedCall<unknown>, then: () => void): void {
    const restMs = this.#openedAt + ROOTS_MS - Date.now()
    const mayAsk = this.#rootsHabit.asks !== false && call.canBeAsked && call.exchange.caller.capabilities.has('roots')
    if (restMs <= 0 || !mayAsk) return call.onceAnswered(then)
    const timer = setTimeout(() => {
      if (this.#rootsHabit.asks === undefined) this.#rootsHabit.record(false)
      call.onceAnswered(then)
    }, restMs)
    call.upstream.onAbort(() => clearTimeout(timer))
  }

  /** Some servers offer tools only once they have processed `initialized`; then they answer a ping. */
  #pingFirst(exchange: Exchange, then: () => void): void {
    if (this.#isPinged) return then()
    let isDone = false
    const proceed = (): void => {
      if (isDone) return
      isDone = true
      this.#isPinged = true
      clearTimeout(timer)
      then()
    }
    const timer = setTimeout(proceed, PING_MS)
    this.#dispatch({ ...exchange, method: 'ping', params: Json.empty, signal: NEVER, sink: proceed })
  }

  /** Makes the session log at least what the caller asked for: the level is that of its most verbose caller so far. */
  #ensureLevel({ caller }: Exchange, then: () => void): void {
    const { logLevel } = caller
    const isEnough =
      logLevel === undefined || (this.#level !== undefined && severity(this.#level) <= severity(logLevel))
    if (isEnough || this.#hasNoLevels) return then()
    // Never less verbose than a pending request: the later of the two wins at the server.
    const requested = this.#requestedLevel
    const level = requested !== undefined && severity(requested) < severity(logLevel) ? requested : logLevel
    this.#requestedLevel = level
    this.#dispatch({
      kind: 'request',
      method: 'logging/setLevel',
      params: Json.of({ level }),
      caller,
      signal: NEVER,
      sink: frame => {
        if (frame.kind === 'result') this.#level = level
        else if (frame.kind === 'failure') this.#hasNoLevels = frame.error.code === ERRORS.methodNotFound.code
        else return
        then()
      },
    })
  }
}

const severity = (level: LogSeverity): number => LOG_SEVERITIES.indexOf(level)

/** False for a log message below the caller's level. */
export const isWanted = (frame: Frame, level: LogSeverity | undefined): boolean => {
  if (frame.kind !== 'notice' || frame.method !== NOTIFICATIONS.message) return true
  const given = frame.params.get('level')?.asString()
  return level !== undefined && (!isLogSeverity(given) || severity(given) >= severity(level))
}
