import { Abort, type AbortReason, type Signal } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Answer, Caller, Exchange, Frame } from '../../protocol/exchange.ts'
import { LOG_SEVERITIES, type LogSeverity } from '../../protocol/methods.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { SlotEntry } from '../../std/slot-list.ts'
import { Json, type Plain } from '../../wire/json/json.ts'
import { failure } from './failures.ts'
import { type Ask, AskFailure, type ClientCapability, hasCapability, requireCapabilities } from './questions.ts'
import type { Changes } from './subscriptions.ts'
import type { TaskBoard, ToolTask } from './tasks.ts'

/** What a handler knows and can do while it works on one request. */
export interface Call {
  readonly caller: Caller
  readonly params: Json // of the request, with every member
  readonly signal: Signal // fires when the call ends for any reason
  readonly changed: Changes
  /** Sends progress to a caller that asked for it. The value must increase; others are dropped. */
  progress(progress: number, total?: number, message?: string): void | Promise<void>
  /** Sends a log message to a caller that asked for this level or a lower one. */
  log(level: LogSeverity, data: Plain, logger?: string): void | Promise<void>
  /** Asks the client or its user and waits. The key is unique within the call. Throws AskFailure. */
  ask<T>(key: string, question: Ask<T>): Promise<T>
  can(capability: ClientCapability): boolean
  /** Fails the call unless the client declared all of these. */
  require(...capabilities: ClientCapability[]): void
  /** Ends the stream of the answer, if the client can resume it: it comes back for the result after that time. */
  closeStream(retryMs: number): void
  /** Goes on as a task, if the client has declared the extension: it polls for the result, and may disconnect. */
  becomeTask(task?: ToolTask): void
}

/** A call and the way to end it; the caller may end it first. */
export interface RunningCall extends SlotEntry {
  readonly call: Call
  /** Sends the last frame; later frames are dropped. */
  end(frame: Frame): void
}

const ENDED: AbortReason = { kind: 'cancelled', text: 'The call ended without waiting for this answer' }

/** Starts a call whose frames reach the sink of the exchange until the call ends. */
export const startCall = (exchange: Exchange, changed: Changes, tasks: TaskBoard, complete: Complete): RunningCall => {
  const ended = new Abort()
  let { sink } = exchange
  const send = (frame: Frame): void | Promise<void> => (ended.reason ? undefined : deliver(sink, frame))
  const stopListening = exchange.signal.onAbort(reason => ended.abort(reason))
  ended.onAbort(stopListening)
  const { caller, params } = exchange
  const becomeTask = (task: ToolTask = 'optional'): void => {
    if (sink !== exchange.sink || ended.reason) return
    const started = tasks.start(caller, task, reason => ended.abort(reason))
    if (!started) return
    stopListening() // the client may leave now
    void send({ kind: 'result', result: complete(started.created) })
    sink = started.sink
  }
  const call: Call = {
    caller,
    params,
    signal: ended,
    changed,
    progress: createProgress(send, params.at('_meta', 'progressToken')),
    log: (level, data, logger) => {
      if (isWanted(level, caller.logLevel))
        return send({ kind: 'notice', method: NOTIFICATIONS.message, params: Json.of({ level, logger, data }) })
    },
    ask: createAsk(send, ended, exchange),
    can: capability => hasCapability(caller.capabilities, capability),
    require: (...capabilities) => requireCapabilities(caller.capabilities, capabilities),
    closeStream: retryMs => exchange.closeStream?.(retryMs),
    becomeTask,
  }
  const end = (frame: Frame): void => {
    void send(frame)
    ended.abort(ENDED)
  }
  return { call, end, slot: -1 }
}

/** Adds the members that every result has. */
type Complete = (result: Json) => Json

type Send = (frame: Frame) => void | Promise<void>

const isWanted = (level: LogSeverity, wanted: LogSeverity | undefined): boolean =>
  wanted !== undefined && LOG_SEVERITIES.indexOf(level) >= LOG_SEVERITIES.indexOf(wanted)

const createProgress = (send: Send, progressToken: Json | undefined): Call['progress'] => {
  if (progressToken?.kind !== 'string' && progressToken?.kind !== 'number') return () => {}
  let last = Number.NEGATIVE_INFINITY
  return (progress, total, message) => {
    if (!Number.isFinite(progress) || progress <= last) return
    last = progress
    const params = Json.of({ progressToken, progress, total, message })
    return send({ kind: 'notice', method: NOTIFICATIONS.progress, params })
  }
}

const createAsk = (send: Send, ended: Signal, exchange: Exchange): Call['ask'] => {
  const keys = new Set<string>()
  const ask = async <T>(key: string, question: Ask<T>): Promise<T> => {
    if (keys.has(key)) throw new Error(`The question "${key}" was already asked in this call`)
    keys.add(key)
    requireCapabilities(exchange.caller.capabilities, [question.needs])
    const given = exchange.params.at('inputResponses', key)
    return (given && question.read(given)) ?? sendQuestion(send, ended, key, question)
  }
  return (key, question) => {
    const answer = ask(key, question)
    answer.catch(() => {}) // a handler may end without waiting: that is no unhandled rejection
    return answer
  }
}

const sendQuestion = <T>(send: Send, ended: Signal, key: string, question: Ask<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const withdrawn = new Abort()
    const stopListening = ended.onAbort(reason => {
      withdrawn.abort(reason)
      reject(new AskFailure('withdrawn', key, `The call ended before "${key}" was answered`))
    })
    const { method, params } = question
    const answer = (reply: Answer): void => {
      if (reply.kind === 'progress') return
      stopListening()
      if (reply.kind === 'error')
        return reject(
          new AskFailure('refused', key, `The client refused "${key}": ${reply.error.message}`, reply.error),
        )
      const value = question.read(reply.result)
      if (value !== undefined) resolve(value)
      else reject(new AskFailure('malformed', key, `The answer to "${key}" is not a valid result of ${method}`))
    }
    void send({ kind: 'question', key, method, params, withdrawn, answer })
  })

/** A required text member of the params. */
export const textParam = (params: Json, key: string): string => {
  const text = params.get(key)?.asString()
  if (text === undefined) throw failure('invalidParams', `${key} must be a string`)
  return text
}

/** The arguments of a request, `{}` if it has none. */
export const argumentsOf = (params: Json): Json => {
  const args = params.get('arguments') ?? Json.empty
  if (!args.isObject) throw failure('invalidParams', 'arguments must be an object')
  return args
}
