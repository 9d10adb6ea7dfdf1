import { NEVER } from '../../protocol/cancellation.ts'
import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { isLogSeverity, LOG_SEVERITIES, type LogSeverity } from '../../protocol/methods.ts'
import { Json } from '../../wire/json/json.ts'

const METHOD_NOT_FOUND = -32601

const severity = (level: LogSeverity): number => LOG_SEVERITIES.indexOf(level)

/** False for a log line that the caller has not asked for, or not at this level. */
export const isWanted = (frame: Frame, level: LogSeverity | undefined): boolean => {
  if (frame.kind !== 'notice' || frame.method !== 'notifications/message') return true
  const said = frame.params.get('level')?.asString()
  return level !== undefined && (!isLogSeverity(said) || severity(said) >= severity(level))
}

/** The log level of one legacy session, as talkative as the most curious of its modern callers so far. */
export class LogLevels {
  readonly #dispatch: Dispatch
  #level: LogSeverity | undefined
  #asked: LogSeverity | undefined // the most talkative that was ever sent
  #isDeaf = false // the server knows no levels

  constructor(dispatch: Dispatch) {
    this.#dispatch = dispatch
  }

  /** Calls `then` once the session logs at least what this caller asked for. */
  ensure(exchange: Exchange, then: () => void): void {
    const { logLevel } = exchange.caller
    const isEnough =
      logLevel === undefined || (this.#level !== undefined && severity(this.#level) <= severity(logLevel))
    if (isEnough || this.#isDeaf) return then()
    // Never below one that is still under way: the later of two wins.
    const level = this.#asked !== undefined && severity(this.#asked) < severity(logLevel) ? this.#asked : logLevel
    this.#asked = level
    this.#dispatch({
      kind: 'request',
      method: 'logging/setLevel',
      params: Json.of({ level }),
      caller: exchange.caller,
      signal: NEVER,
      sink: frame => {
        if (frame.kind === 'result') this.#level = level
        else if (frame.kind === 'failure') this.#isDeaf = frame.error.code === METHOD_NOT_FOUND
        else return
        then()
      },
    })
  }
}
