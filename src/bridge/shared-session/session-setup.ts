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
export const createSessionSetup = (dispatch: Dispatch, rootsHabit: RootsHabit) => {
  const openedAt = Date.now()
  let isPinged = false
  let level: LogSeverity | undefined
  let requestedLevel: LogSeverity | undefined // the most verbose that was ever requested
  let hasNoLevels = false

  /** Whether a question now may be about the session rather than about a call. */
  const isFresh = (): boolean => Date.now() <= openedAt + FRESH_MS

  /** A fresh session may ask for roots; a call that needs the answer must not overtake that. */
  const awaitRoots = (call: SharedCall<unknown>, then: () => void): void => {
    const restMs = openedAt + ROOTS_MS - Date.now()
    const mayAsk = rootsHabit.asks !== false && call.canBeAsked && call.exchange.caller.capabilities.has('roots')
    if (restMs <= 0 || !mayAsk) return call.onceAnswered(then)
    const timer = setTimeout(() => {
      if (rootsHabit.asks === undefined) rootsHabit.record(false)
      call.onceAnswered(then)
    }, restMs)
    call.upstream.onAbort(() => clearTimeout(timer))
  }

  /** Some servers offer tools only once they have processed `initialized`; then they answer a ping. */
  const pingFirst = (exchange: Exchange, then: () => void): void => {
    if (isPinged) return then()
    let isDone = false
    const proceed = (): void => {
      if (isDone) return
      isDone = true
      isPinged = true
      clearTimeout(timer)
      then()
    }
    const timer = setTimeout(proceed, PING_MS)
    dispatch({ ...exchange, method: 'ping', params: Json.empty, signal: NEVER, sink: proceed })
  }

  /** Makes the session log at least what the caller asked for: the level is that of its most verbose caller so far. */
  const ensureLevel = ({ caller }: Exchange, then: () => void): void => {
    const { logLevel } = caller
    const isEnough = logLevel === undefined || (level !== undefined && severity(level) <= severity(logLevel))
    if (isEnough || hasNoLevels) return then()
    // Never less verbose than a pending request: the later of the two wins at the server.
    const pending = requestedLevel
    const wanted = pending !== undefined && severity(pending) < severity(logLevel) ? pending : logLevel
    requestedLevel = wanted
    dispatch({
      kind: 'request',
      method: 'logging/setLevel',
      params: Json.of({ level: wanted }),
      caller,
      signal: NEVER,
      sink: frame => {
        if (frame.kind === 'result') level = wanted
        else if (frame.kind === 'failure') hasNoLevels = frame.error.code === ERRORS.methodNotFound.code
        else return
        then()
      },
    })
  }

  return {
    isFresh,
    /** The server has asked a question. */
    asked: (method: string): void => {
      if (method === 'roots/list' && isFresh()) rootsHabit.record(true)
    },
    /** Calls `send` when the session is ready for that call. */
    prepare: (call: SharedCall<unknown>, send: () => void): void => {
      const { exchange } = call
      const isList = exchange.method.endsWith('/list')
      // The level last: a session of one caller ends when no request is pending.
      awaitRoots(call, () => ensureLevel(exchange, isList ? () => pingFirst(exchange, send) : send))
    },
  }
}

const severity = (level: LogSeverity): number => LOG_SEVERITIES.indexOf(level)

/** False for a log message below the caller's level. */
export const isWanted = (frame: Frame, level: LogSeverity | undefined): boolean => {
  if (frame.kind !== 'notice' || frame.method !== NOTIFICATIONS.message) return true
  const given = frame.params.get('level')?.asString()
  return level !== undefined && (!isLogSeverity(given) || severity(given) >= severity(level))
}
