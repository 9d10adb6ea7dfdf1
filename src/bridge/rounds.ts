import { randomUUID } from 'node:crypto'
import { Abort } from '../protocol/cancellation.ts'
import { deliver } from '../protocol/deliver.ts'
import { ERRORS, type RpcError, rpcError } from '../protocol/errors.ts'
import type { Answer, Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { methodInfo } from '../protocol/methods.ts'
import { Json } from '../wire/json/json.ts'
import { refusalOf } from './refusals.ts'

const MOST_ROUNDS = 10
const MOST_AT_ONCE = 1024
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 5000

interface Options {
  readonly questionTtlMs: number
}

/** Lets a legacy caller use a modern server that asks through its results: each round becomes real questions. */
export const askInRounds =
  (dispatch: Dispatch, options: Options): Dispatch =>
  exchange => {
    if (methodInfo(exchange.method)?.asks && exchange.kind === 'request')
      new Rounds(exchange, dispatch, options).send(exchange.params)
    else dispatch(exchange)
  }

/** One call of a legacy client, and as many requests to the server as its questions take. */
class Rounds {
  readonly #exchange: Exchange
  readonly #dispatch: Dispatch
  readonly #ttlMs: number
  readonly #links: string[] = [] // elicitation ids whose completion we owe
  #round = 0

  constructor(exchange: Exchange, dispatch: Dispatch, { questionTtlMs }: Options) {
    this.#exchange = exchange
    this.#dispatch = dispatch
    this.#ttlMs = questionTtlMs
  }

  send(params: Json): void {
    this.#dispatch({ ...this.#exchange, params, sink: frame => this.#receive(frame) })
  }

  #receive(frame: Frame): void | Promise<void> {
    if (frame.kind !== 'result') return this.#exchange.sink(frame)
    const type = frame.result.get('resultType')?.asString() ?? 'complete'
    if (type === 'input_required') return this.#ask(frame.result)
    if (type !== 'complete')
      return this.#exchange.sink({
        kind: 'failure',
        error: rpcError('internal', `The server answered with an unknown kind of result: ${type}`),
      })
    for (const elicitationId of this.#links)
      void deliver(this.#exchange.sink, {
        kind: 'notice',
        method: 'notifications/elicitation/complete',
        params: Json.of({ elicitationId }),
      })
    return this.#exchange.sink(frame)
  }

  #ask(result: Json): void {
    const asked = result.get('inputRequests')?.entries() ?? []
    const state = result.get('requestState')
    if (++this.#round > MOST_ROUNDS) return this.#giveUp(`The server kept asking after ${MOST_ROUNDS} rounds`)
    if (asked.length === 0) return this.#pause(state)
    if (asked.length > MOST_AT_ONCE)
      return this.#giveUp(`The server asked ${asked.length} questions at once; ${MOST_AT_ONCE} are the most`)
    const { capabilities } = this.#exchange.caller
    for (const [, { method, params }] of asked.map(readQuestion)) {
      const refusal = refusalOf(capabilities, method, params)
      if (refusal) return this.#giveUp(`The server asked what this client cannot answer: ${refusal.message}`)
    }
    this.#askAll(asked.map(readQuestion), state)
  }

  /** Nothing to ask, only a state to bring back: later. */
  #pause(state: Json | undefined): void {
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (this.#round - 1), LONGEST_PAUSE_MS)
    const timer = setTimeout(() => {
      release()
      this.#retry(state, undefined)
    }, pause)
    const release = this.#exchange.signal.onAbort(() => clearTimeout(timer))
  }

  #askAll(questions: readonly (readonly [string, Asked])[], state: Json | undefined): void {
    const withdrawn = new Abort()
    const answers = new Map<string, Json>()
    const close = () => {
      clearTimeout(timer)
      release()
      withdrawn.abort({ kind: 'expired' })
    }
    const timer = setTimeout(() => {
      close()
      this.#giveUp('Nobody answered in time')
    }, this.#ttlMs)
    const release = this.#exchange.signal.onAbort(close)
    for (const [key, { method, params }] of questions) {
      const answer = (reply: Answer): void => {
        if (withdrawn.reason || reply.kind === 'progress' || answers.has(key)) return
        const result = reply.kind === 'result' ? reply.result : insteadOf(method, reply.error)
        if (!result) {
          close()
          return this.#giveUp(`The client refused ${method}: ${(reply as { error: RpcError }).error.message}`)
        }
        answers.set(key, result)
        if (answers.size < questions.length) return
        close()
        this.#retry(state, answers)
      }
      void deliver(this.#exchange.sink, {
        kind: 'question',
        key,
        method,
        params: this.#withId(method, params),
        withdrawn,
        answer,
      })
    }
  }

  /** Legacy links carry an id by which their completion is announced. */
  #withId(method: string, params: Json): Json {
    if (method !== 'elicitation/create' || params.get('mode')?.asString() !== 'url') return params
    const elicitationId = params.get('elicitationId')?.asString() ?? randomUUID()
    this.#links.push(elicitationId)
    return params.with('elicitationId', elicitationId)
  }

  #retry(state: Json | undefined, answers: ReadonlyMap<string, Json> | undefined): void {
    if (this.#exchange.signal.reason) return
    const original = this.#exchange.params.without('inputResponses', 'requestState')
    const answered = answers ? original.with('inputResponses', Object.fromEntries(answers)) : original
    this.send(state ? answered.with('requestState', state) : answered)
  }

  /** A tool fails in words the model reads; anything else as an error. */
  #giveUp(message: string): void {
    if (this.#exchange.method !== 'tools/call')
      return void deliver(this.#exchange.sink, { kind: 'failure', error: rpcError('internal', message) })
    const result = Json.of({ resultType: 'complete', isError: true, content: [{ type: 'text', text: message }] })
    void deliver(this.#exchange.sink, { kind: 'result', result })
  }
}

interface Asked {
  readonly method: string
  readonly params: Json
}

const readQuestion = ([key, request]: readonly [string, Json]): readonly [string, Asked] => {
  const params = request.get('params')
  return [key, { method: request.get('method')?.asString() ?? '', params: params?.isObject ? params : Json.empty }]
}

const UNSEEN: ReadonlySet<number> = new Set([ERRORS.methodNotFound.code, ERRORS.invalidParams.code])

/** What stands for an error where the modern form has no place for one; nothing for a question no user has seen. */
const insteadOf = (method: string, { code }: RpcError): Json | undefined =>
  method === 'elicitation/create' && !UNSEEN.has(code) ? Json.of({ action: 'cancel' }) : undefined
