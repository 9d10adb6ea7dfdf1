import type { Answer, Exchange, Question } from '../../protocol/exchange.ts'
import type { TappedServer } from '../../protocol/message-tap.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeResult } from '../../wire/json-rpc.ts'
import { Questions, type ServerRequest } from './questions.ts'
import type { SessionListeners } from './session-listeners.ts'
import { type Sharers, sharerOf } from './sharers.ts'
import { type AskableCall, areOfOneSharer, UNCLEAR, UnclearQuestions } from './unclear-questions.ts'

interface RouterOptions {
  readonly listeners: SessionListeners
  readonly sharers: Sharers
  post(pieces: Buffer[], what: string, onLost?: () => void): void
  /** How many answers the server has not taken yet. */
  unsent(): number
  /** A question arrived; the returned function is called once it is settled. */
  asked(method: string): (() => void) | undefined
  /** The server, for the flight recorder. */
  server(): TappedServer
}

/** Brings the requests of one server to the client they are for, and the answers back. */
export class QuestionRouter {
  readonly #options: RouterOptions
  readonly #questions: Questions
  readonly #unclear = new UnclearQuestions()
  #roots: Json | undefined

  constructor(options: RouterOptions) {
    this.#options = options
    this.#questions = new Questions(
      (pieces, what, onLost) => options.post(pieces, what, onLost),
      () => options.unsent(),
      () => options.server(),
    )
  }

  /** The client's latest answer to `roots/list`. */
  get roots(): Json | undefined {
    return this.#roots
  }

  /** The open questions. */
  get size(): number {
    return this.#questions.size
  }

  /** Asks on that call; without one, the listener of the client that was last active. */
  ask(call: AskableCall | undefined, message: ServerRequest): void | Promise<void> {
    if (message.method === 'ping') return this.#options.post(encodeResult(message.id, Json.empty), 'answer to ping')
    const { listeners, sharers } = this.#options
    const sharer = sharers.areSeveral ? sharers.latest : undefined
    const owner = call ?? listeners.latest(sharer) ?? this
    const question = this.#open(message, owner, () => call)
    if (!question) return
    if (call) return call.ask(question)
    if (sharers.areSeveralUsers) return question.answer({ kind: 'error', error: UNCLEAR })
    listeners.ask(question, sharer)
  }

  /** Asks the client that these calls are of, the latest first; if they are of several clients, as soon as it is clear which. */
  askOneOf(calls: readonly AskableCall[], message: ServerRequest): void {
    if (areOfOneSharer(calls) || message.method === 'ping') return void this.ask(calls.at(-1), message)
    if (message.method === 'roots/list' && this.#roots)
      // clients that share a session have equal roots
      return this.#options.post(encodeResult(message.id, this.#roots), 'roots')
    const owner = {} // until it is clear
    let asked: AskableCall | undefined
    const question = this.#open(message, owner, () => asked)
    if (!question) return
    this.#unclear.add(question, calls, call => {
      asked = call
      this.#questions.handOver(owner, call)
      void call.ask(question)
    })
  }

  /** The server cancelled the request with that id. */
  withdraw(id: Json | undefined): void {
    this.#questions.withdraw(id)
  }

  /** The server has been told to end the call. */
  cancelled(call: AskableCall): void {
    this.#unclear.ended(call, false)
  }

  /**
   * The call has ended. With a response, it did not own the questions that are still open; a cancelled one may not have,
   * either: `rest` are the other calls that may.
   */
  finished(call: AskableCall, hasResponse: boolean, rest: readonly AskableCall[]): void {
    if (this.#questions.size === 0) return
    const { listeners, sharers } = this.#options
    const sharer = sharerOf(call.exchange.caller)
    const newOwner = listeners.latest(sharers.areSeveral ? sharer : undefined) ?? this
    const mayBeAnothers = rest.some(other => other.canBeAsked && sharerOf(other.exchange.caller) === sharer)
    if (hasResponse || mayBeAnothers) this.#questions.handOver(call, newOwner)
    else if (call.exchange.method === 'tasks/result') this.#questions.forget(call)
    else this.#questions.abandon(call, newOwner)
    this.#unclear.ended(call, hasResponse)
  }

  /** The listener has left. */
  leave(listener: Exchange): void {
    this.#questions.leave(listener)
  }

  /** The server has lost its state, and with it what it asked. */
  clear(): void {
    this.#questions.clear()
  }

  /** Opens a question; undefined if it is open already, or too many are. */
  #open(message: ServerRequest, owner: object, callOf: () => AskableCall | undefined): Question | undefined {
    const settled = this.#options.asked(message.method)
    const question = this.#questions.ask(message, owner, {
      settled: () => {
        callOf()?.settleQuestion()
        settled?.()
      },
      answerLost: () => callOf()?.loseAnswer(),
    })
    if (!question) settled?.()
    if (question?.method !== 'roots/list') return question
    const answer = (reply: Answer): void => {
      if (reply.kind === 'result') this.#roots = reply.result.compact()
      question.answer(reply)
    }
    return { ...question, answer }
  }
}
