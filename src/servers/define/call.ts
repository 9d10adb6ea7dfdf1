import { Abort, type AbortReason, type Signal } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Answer, Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import { LEVELS, type Level } from '../../protocol/methods.ts'
import { Json, type Plain } from '../../wire/json/json.ts'
import { type Ability, isAble, requireAbilities } from './abilities.ts'
import { AskFailure } from './failures.ts'
import type { Ask } from './questions.ts'
import type { Changes } from './subscriptions.ts'

/** What a handler knows and can do while it works on one request. */
export interface Call {
  readonly caller: Caller
  readonly params: Json // as they came, with every member
  readonly signal: Signal // fires when the call is over, whoever ended it
  readonly changed: Changes
  /** Tells how far the work is, if the caller asked to know; values that do not grow are left out. */
  progress(progress: number, total?: number, message?: string): void | Promise<void>
  /** Sends a log line to a caller that asked for this level or a lower one. */
  log(level: Level, data: Plain, logger?: string): void | Promise<void>
  /** Asks the client or its user and waits. The key names the question within this call; throws AskFailure. */
  ask<T>(key: string, question: Ask<T>): Promise<T>
  can(ability: Ability): boolean
  /** Fails the call unless the client declared all of these. */
  require(...abilities: Ability[]): void
}

/** A call and the way to end it; the caller may do so first. */
export interface RunningCall {
  readonly call: Call
  /** Sends the last frame; whatever comes later is dropped. */
  end(frame: Frame): void
}

const DONE: AbortReason = { kind: 'cancelled', text: 'The call ended without waiting for this answer' }

/** Opens the guarded way from a handler to the sink of an exchange. */
export const startCall = (exchange: Exchange, changed: Changes): RunningCall => {
  const over = new Abort()
  const send = (frame: Frame): void | Promise<void> => (over.reason ? undefined : deliver(exchange.sink, frame))
  over.onAbort(exchange.signal.onAbort(reason => over.abort(reason)))
  const { caller, params } = exchange
  const call: Call = {
    caller,
    params,
    signal: over,
    changed,
    progress: progressTo(send, params.at('_meta', 'progressToken')),
    log: (level, data, logger) => {
      if (isWanted(level, caller.logLevel))
        return send({ kind: 'notice', method: 'notifications/message', params: Json.of({ level, logger, data }) })
    },
    ask: asker(send, over, exchange),
    can: ability => isAble(caller.capabilities, ability),
    require: (...abilities) => requireAbilities(caller.capabilities, abilities),
  }
  const end = (frame: Frame): void => {
    void send(frame)
    over.abort(DONE)
  }
  return { call, end }
}

type Send = (frame: Frame) => void | Promise<void>

const isWanted = (level: Level, wanted: Level | undefined): boolean =>
  wanted !== undefined && LEVELS.indexOf(level) >= LEVELS.indexOf(wanted)

const progressTo = (send: Send, progressToken: Json | undefined): Call['progress'] => {
  if (progressToken?.kind !== 'string' && progressToken?.kind !== 'number') return () => {}
  let last = Number.NEGATIVE_INFINITY
  return (progress, total, message) => {
    if (!Number.isFinite(progress) || progress <= last) return
    last = progress
    const params = Json.of({ progressToken, progress, total, message })
    return send({ kind: 'notice', method: 'notifications/progress', params })
  }
}

const asker = (send: Send, over: Signal, exchange: Exchange): Call['ask'] => {
  const keys = new Set<string>()
  const ask = async <T>(key: string, question: Ask<T>): Promise<T> => {
    if (keys.has(key)) throw new Error(`The question "${key}" was already asked in this call`)
    keys.add(key)
    requireAbilities(exchange.caller.capabilities, [question.needs])
    const given = exchange.params.at('inputResponses', key)
    return (given && question.read(given)) ?? put(send, over, key, question)
  }
  return (key, question) => {
    const answer = ask(key, question)
    answer.catch(() => {}) // a handler may end without waiting; that is no unhandled rejection
    return answer
  }
}

const put = <T>(send: Send, over: Signal, key: string, question: Ask<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const withdrawn = new Abort()
    const forget = over.onAbort(reason => {
      withdrawn.abort(reason)
      reject(new AskFailure('withdrawn', key, `The call ended before "${key}" was answered`))
    })
    const answer = (reply: Answer): void => {
      if (reply.kind === 'progress') return
      forget()
      const failure = refusal(key, reply)
      const value = reply.kind === 'result' ? question.read(reply.result) : undefined
      if (value !== undefined) resolve(value)
      else reject(failure ?? new AskFailure('malformed', key, `The answer to "${key}" does not fit ${question.method}`))
    }
    void send({ kind: 'question', key, method: question.method, params: question.params, withdrawn, answer })
  })

const refusal = (key: string, reply: Answer): AskFailure | undefined =>
  reply.kind === 'error'
    ? new AskFailure('refused', key, `The client refused "${key}": ${reply.error.message}`, reply.error)
    : undefined
