import { randomUUID } from 'node:crypto'
import { Abort } from '../protocol/cancellation.ts'
import { deliver } from '../protocol/deliver.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import type { Answer, Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { methodInfo } from '../protocol/methods.ts'
import { NOTIFICATIONS } from '../protocol/notifications.ts'
import { backoffMs, sleep } from '../std/time.ts'
import { Json } from '../wire/json/json.ts'
import { failCall, questionRefusal, resultOfError } from './client-questions.ts'

const MAX_ROUNDS = 10
const MAX_QUESTIONS = 1024 // in one round
const PAUSE = { firstMs: 250, longestMs: 5000 }

interface RoundOptions {
  readonly questionTtlMs: number
}

/** Lets a legacy caller use a modern server that asks with `input_required` results: each round becomes live questions. */
export const askInRounds =
  (dispatch: Dispatch, options: RoundOptions): Dispatch =>
  exchange => {
    if (methodInfo(exchange.method)?.asks && exchange.kind === 'request')
      new RoundsCall(exchange, dispatch, options).send(exchange.params)
    else dispatch(exchange)
  }

/** The same for a call whose first round has been answered with `result`. */
export const continueInRounds = (exchange: Exchange, dispatch: Dispatch, options: RoundOptions, result: Json): void =>
  void new RoundsCall(exchange, dispatch, options).receive({ kind: 'result', result })

/** One call of a client that is asked live: one request to the server per round. */
class RoundsCall {
  readonly #exchange: Exchange
  readonly #dispatch: Dispatch
  readonly #ttlMs: number
  readonly #elicitationIds: string[] = [] // of URLs whose completion the client expects
  #round = 0

  constructor(exchange: Exchange, dispatch: Dispatch, { questionTtlMs }: RoundOptions) {
    this.#exchange = exchange
    this.#dispatch = dispatch
    this.#ttlMs = questionTtlMs
  }

  send(params: Json): void {
    this.#dispatch({ ...this.#exchange, params, sink: frame => this.receive(frame) })
  }

  receive(frame: Frame): void | Promise<void> {
    const { sink } = this.#exchange
    if (frame.kind !== 'result') return sink(frame)
    const type = frame.result.get('resultType')?.asString() ?? 'complete'
    if (type === 'input_required') return this.#ask(frame.result)
    if (type !== 'complete') {
      const error = rpcError('internal', `The server answered with an unknown kind of result: ${type}`)
      return sink({ kind: 'failure', error })
    }
    for (const elicitationId of this.#elicitationIds)
      void deliver(sink, {
        kind: 'notice',
        method: NOTIFICATIONS.elicitationComplete,
        params: Json.of({ elicitationId }),
      })
    return sink(frame)
  }

  #ask(result: Json): void {
    const requests = result.get('inputRequests')?.entries() ?? []
    const state = result.get('requestState')
    if (++this.#round > MAX_ROUNDS) return this.#fail(`The server kept asking after ${MAX_ROUNDS} rounds`)
    if (requests.length === 0 && !state)
      return this.#fail('The server asked for input, but sent neither a question nor a state to continue with')
    if (requests.length === 0) return this.#retryLater(state)
    if (requests.length > MAX_QUESTIONS)
      return this.#fail(`The server asked ${requests.length} questions at once; ${MAX_QUESTIONS} are the most`)
    const questions = requests.map(readQuestion)
    const { capabilities } = this.#exchange.caller
    for (const { method, params } of questions) {
      const refusal = questionRefusal(capabilities, method, params)
      if (refusal) return this.#fail(`The server asked what this client cannot answer: ${refusal.message}`)
    }
    this.#askAll(questions, state)
  }

  #retryLater(state: Json | undefined): void {
    void sleep(backoffMs(PAUSE, this.#round - 1, 1)).then(() => this.#retry(state, undefined))
  }

  #askAll(questions: readonly InputRequest[], state: Json | undefined): void {
    const withdrawn = new Abort()
    const answers = new Map<string, Json>()
    const close = () => {
      clearTimeout(timer)
      stopListening()
      withdrawn.abort({ kind: 'expired' })
    }
    const timer = setTimeout(() => {
      close()
      this.#fail('The user did not answer in time')
    }, this.#ttlMs)
    const stopListening = this.#exchange.signal.onAbort(() => {
      close()
      // What waits for the answers is told, so that it waits no longer.
      if (this.#exchange.task && state) this.send(this.#exchange.params.with('requestState', state))
    })
    for (const { key, method, params } of questions) {
      const answer = (reply: Answer): void => {
        if (withdrawn.reason || reply.kind === 'progress' || answers.has(key)) return
        const result = reply.kind === 'result' ? reply.result : resultOfError(method, reply.error)
        if (result) answers.set(key, result)
        if (result && answers.size < questions.length) return
        close()
        if (result) this.#retry(state, answers)
        else this.#fail(`The client refused ${method}: ${(reply as { error: RpcError }).error.message}`)
      }
      const frame = { kind: 'question', key, method, params: this.#withId(method, params), withdrawn, answer } as const
      void deliver(this.#exchange.sink, frame)
    }
  }

  /** A legacy URL elicitation has an id; `notifications/elicitation/complete` names it. */
  #withId(method: string, params: Json): Json {
    if (method !== 'elicitation/create' || params.get('mode')?.asString() !== 'url') return params
    const elicitationId = params.get('elicitationId')?.asString() ?? randomUUID()
    this.#elicitationIds.push(elicitationId)
    return params.with('elicitationId', elicitationId)
  }

  #retry(state: Json | undefined, answers: ReadonlyMap<string, Json> | undefined): void {
    if (this.#exchange.signal.reason) return
    const original = this.#exchange.params.without('inputResponses', 'requestState')
    const answered = answers ? original.with('inputResponses', Object.fromEntries(answers)) : original
    this.send(state ? answered.with('requestState', state) : answered)
  }

  #fail(message: string): void {
    failCall(this.#exchange, message, { resultType: 'complete' })
  }
}

interface InputRequest {
  readonly key: string
  readonly method: string
  readonly params: Json
}

const readQuestion = ([key, request]: readonly [string, Json]): InputRequest => {
  const params = request.get('params')
  return { key, method: request.get('method')?.asString() ?? '', params: params?.isObject ? params : Json.empty }
}
