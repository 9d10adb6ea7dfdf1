import { Abort, type Signal } from '../../protocol/cancellation.ts'
import { answerQuestion } from '../../protocol/deliver.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Answer, Frame, Question, Sink } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { ClientError } from './exit-codes.ts'

/** What a command does with frames that are no results. */
export interface FrameHandlers {
  notice(method: string, params: Json): void
  /** Resolves with the result for the server. An RpcFailure is the server's answer, too; a ClientError ends the command. */
  answer(question: Question): Promise<Json>
}

interface PendingOptions {
  readonly timeoutMs: number // of silence; 0: none
  readonly silent: () => ClientError
  readonly handlers: FrameHandlers
}

const GRACE_MS = 500 // for a server to end a call whose question was cancelled

/** One request of a command, until its result or until the command gives it up. */
export class ClientRequest {
  readonly result: Promise<Json>
  readonly over: Promise<void> // the server does not work on it any more, as far as we can tell
  readonly #options: PendingOptions
  readonly #ending = new Abort()
  readonly #questions = new Set<Question>() // that wait for an answer
  #timer: NodeJS.Timeout | undefined
  #isSettled = false
  #resolve: (result: Json) => void = () => {}
  #reject: (error: unknown) => void = () => {}
  #finish: () => void = () => {}

  constructor(options: PendingOptions) {
    this.#options = options
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.over = new Promise(resolve => {
      this.#finish = resolve
    })
    this.#restartTimer()
  }

  /** Aborted when the server shall stop. */
  get signal(): Signal {
    return this.#ending
  }

  readonly sink: Sink = frame => {
    if (frame.kind === 'question') return this.#ask(frame)
    if (frame.kind === 'notice') {
      this.#restartTimer()
      return this.#options.handlers.notice(frame.method, frame.params)
    }
    this.#end(frame)
  }

  /**
   * Gives it up with that error. Open questions are cancelled first, and the server gets a moment for that: a gateway
   * may keep the call for its client otherwise.
   */
  fail(error: ClientError, reason: string): void {
    if (this.#isSettled) return
    this.#settle()
    this.#reject(error)
    const abort = (): void => {
      this.#ending.abort({ kind: 'cancelled', text: reason })
      this.#finish()
    }
    if (this.#questions.size === 0) return abort()
    const timer = setTimeout(abort, GRACE_MS)
    void this.over.then(() => clearTimeout(timer))
    for (const question of this.#questions) answerQuestion(question, refusalOf(question.method, error.message))
  }

  #end(frame: Exclude<Frame, { kind: 'question' | 'notice' }>): void {
    this.#settle()
    if (frame.kind === 'result') this.#resolve(frame.result)
    else this.#reject(new RpcFailure(frame.error))
    this.#finish()
  }

  #settle(): void {
    this.#isSettled = true
    clearTimeout(this.#timer)
  }

  #ask(question: Question): void {
    if (this.#isSettled) return answerQuestion(question, refusalOf(question.method, 'The request was cancelled'))
    this.#questions.add(question)
    clearTimeout(this.#timer) // the server waits for the user
    const reply = (answer: Answer): void => {
      this.#questions.delete(question)
      answerQuestion(question, answer)
      this.#restartTimer()
    }
    this.#options.handlers.answer(question).then(
      result => reply({ kind: 'result', result }),
      (thrown: unknown) => {
        if (thrown instanceof RpcFailure) reply({ kind: 'error', error: thrown.error })
        else if (thrown instanceof ClientError) this.fail(thrown, 'the question has no answer')
        else this.#reject(thrown)
      },
    )
  }

  #restartTimer(): void {
    const { timeoutMs, silent } = this.#options
    clearTimeout(this.#timer)
    if (timeoutMs > 0 && !this.#isSettled && this.#questions.size === 0)
      this.#timer = setTimeout(() => this.fail(silent(), 'timed out'), timeoutMs)
  }
}

/** Elicitation has a result for a user who went away; the other methods have only an error. */
export const refusalOf = (method: string, message: string): Answer =>
  method === 'elicitation/create'
    ? { kind: 'result', result: Json.of({ action: 'cancel' }) }
    : { kind: 'error', error: rpcError('internal', message) }
