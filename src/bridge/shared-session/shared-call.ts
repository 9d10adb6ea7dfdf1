import { Abort } from '../../protocol/cancellation.ts'
import { answerQuestion, deliver } from '../../protocol/deliver.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Answer, Caller, Exchange, Question } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { abandoned } from '../refusals.ts'

/** One call of a modern caller on a session it shares with others, and what it has been asked. */
export class SharedCall {
  readonly exchange: Exchange
  readonly canBeAsked: boolean
  readonly upstream = new Abort() // what the session sees of the caller's signal
  isBegun = false // no question can be meant for one that still waits for its turn

  readonly #handBack: (question: Question, from: SharedCall) => void
  readonly #open = new Set<Question>()
  #askedAt = 0
  #whenAnswered: (() => void) | undefined

  constructor(exchange: Exchange, handBack: (question: Question, from: SharedCall) => void) {
    this.exchange = exchange
    this.#handBack = handBack
    this.canBeAsked = methodInfo(exchange.method)?.asks === true && asksAnything(exchange.caller)
  }

  /** Since when a person has been asked; undefined while nobody is. */
  get askedAt(): number | undefined {
    return this.#open.size > 0 ? this.#askedAt : undefined
  }

  ask(question: Question): void {
    const close = (): void => {
      if (this.#open.delete(question) && this.#open.size === 0) this.#whenAnswered?.()
    }
    if (this.#open.size === 0) this.#askedAt = Date.now()
    this.#open.add(question)
    question.withdrawn.onAbort(close)
    const answer = (reply: Answer): void => {
      if (reply.kind !== 'progress') close()
      question.answer(reply)
    }
    const handBack = (): void => {
      close()
      this.#handBack(question, this)
    }
    void deliver(this.exchange.sink, { ...question, answer, handBack })
  }

  /** Runs that once, as soon as nothing is open. */
  onceAnswered(run: () => void): void {
    const go = (): void => {
      this.#whenAnswered = undefined
      run()
    }
    if (this.#open.size === 0) go()
    else this.#whenAnswered = go
  }

  /** Ends it from our side. */
  fail(error: RpcError): void {
    for (const question of [...this.#open]) answerQuestion(question, abandoned(question.method))
    this.upstream.abort({ kind: 'expired' })
    void deliver(this.exchange.sink, { kind: 'failure', error })
  }
}

const asksAnything = ({ capabilities }: Caller): boolean =>
  capabilities.has('elicitation') || capabilities.has('sampling') || capabilities.has('roots')
