import { isSameUser } from '../../protocol/callers.ts'
import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import { canBeAsked } from '../../protocol/capabilities.ts'
import { answerQuestion, deliver } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Answer, Caller, Exchange, Question } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { abandoned } from '../client-questions.ts'

const HOLD_MS = 60_000 // servers on the SDKs time out after as long
const MAX_HELD = 100

/** What a call reports to the session it was sent to. */
interface CallHooks<S> {
  readonly session: S
  cancelled(call: SharedCall<S>, reason: AbortReason): void
  /** The call cannot carry the question any more, and the server still waits for the answer. */
  handedBack(call: SharedCall<S>, question: Question): void
}

/** One call of a modern caller on a session that it shares with others, and the questions it carries. */
export class SharedCall<S> {
  readonly exchange: Exchange
  readonly canBeAsked: boolean
  readonly upstream = new Abort() // the signal of the request to the server
  readonly #hooks: CallHooks<S>
  readonly #questions = new Set<Question>()
  readonly #stopListening: () => void
  #session: S
  #isRunning = false
  #askedAt = 0
  #onAnswered: (() => void) | undefined

  constructor(exchange: Exchange, hooks: CallHooks<S>) {
    this.exchange = exchange
    this.#hooks = hooks
    this.#session = hooks.session
    this.canBeAsked = methodInfo(exchange.method)?.asks === true && canBeAsked(exchange.caller.capabilities)
    this.#stopListening = exchange.signal.onAbort(reason => hooks.cancelled(this, reason))
  }

  /** The session that the call was sent to. */
  get origin(): S {
    return this.#hooks.session
  }

  /** The session that the call runs on or waits for: the origin, or a further session. */
  get session(): S {
    return this.#session
  }

  /** False while it waits for its turn: no question of the server can be meant for it. */
  get isRunning(): boolean {
    return this.#isRunning
  }

  /** Since when its client has an open question; undefined if it has none. */
  get askedAt(): number | undefined {
    return this.#questions.size > 0 ? this.#askedAt : undefined
  }

  run(session: S): void {
    this.#session = session
    this.#isRunning = true
  }

  ask(question: Question): void {
    const close = (): void => {
      if (this.#questions.delete(question) && this.#questions.size === 0) this.#onAnswered?.()
    }
    if (this.#questions.size === 0) this.#askedAt = Date.now()
    if (this.exchange.record?.tap) question.recordIn?.(this.exchange.record.tap)
    this.#questions.add(question)
    question.withdrawn.onAbort(close)
    const answer = (reply: Answer): void => {
      if (reply.kind !== 'progress') close()
      question.answer(reply)
    }
    const handBack = (): void => {
      close()
      this.#hooks.handedBack(this, question)
    }
    void deliver(this.exchange.sink, { ...question, answer, handBack })
  }

  /** Calls `then` once, as soon as no question is open. */
  onceAnswered(then: () => void): void {
    if (this.#questions.size === 0) return then()
    this.#onAnswered = () => {
      this.#onAnswered = undefined
      then()
    }
  }

  /** The server has answered. */
  end(): void {
    this.#stopListening()
  }

  /** Ends the call with an error of the gateway. */
  fail(error: RpcError): void {
    this.#stopListening()
    for (const question of [...this.#questions]) answerQuestion(question, abandoned(question.method))
    this.upstream.abort({ kind: 'expired' })
    void deliver(this.exchange.sink, { kind: 'failure', error })
  }
}

interface QuestionHooks {
  /** The first question is open. */
  opened(): void
  /** No question is open any more. */
  closed(): void
}

interface HeldQuestion {
  readonly question: Question
  readonly user: Caller | undefined // if it came with a call
  readonly release: () => void
}

/** The open questions of one session, and those that wait for a call that can carry them. */
export class SessionQuestions {
  readonly #hooks: QuestionHooks
  readonly #open = new Set<Question>()
  #held: HeldQuestion[] = []

  constructor(hooks: QuestionHooks) {
    this.#hooks = hooks
  }

  get hasOpen(): boolean {
    return this.#open.size > 0
  }

  /** Counts the question until it is answered or withdrawn; the returned question must be asked instead. */
  add(question: Question): Question {
    if (question.withdrawn.reason) return question
    const close = (): void => {
      if (!this.#open.delete(question)) return
      stopListening()
      if (this.#open.size === 0) this.#hooks.closed()
    }
    this.#open.add(question)
    const stopListening = question.withdrawn.onAbort(close)
    if (this.#open.size === 1) this.#hooks.opened()
    const answer = (reply: Answer): void => {
      question.answer(reply)
      if (reply.kind !== 'progress') close()
    }
    return { ...question, answer }
  }

  /** Keeps the question for the next call (of that user, if given); refuses it after a while. */
  hold(question: Question, user?: Caller): void {
    if (question.withdrawn.reason) return
    if (this.#held.length >= MAX_HELD) return question.answer(notCarried(question.method))
    const drop = (): void => {
      release()
      this.#held = this.#held.filter(held => held.question !== question)
    }
    const timer = setTimeout(() => {
      drop()
      question.answer(notCarried(question.method))
    }, HOLD_MS).unref()
    const stopListening = question.withdrawn.onAbort(drop)
    const release = (): void => {
      clearTimeout(timer)
      stopListening()
    }
    this.#held.push({ question, user, release })
  }

  /** Removes and returns the held questions that a call of that caller may carry: none of another user's call. */
  takeFor(caller: Caller): Question[] {
    const taken = this.#held.filter(({ user }) => !user || isSameUser(user, caller))
    this.#held = this.#held.filter(held => !taken.includes(held))
    return taken.map(({ question, release }) => {
      release()
      return question
    })
  }
}

/** An error and not `cancel`: no user has seen the question. */
export const notCarried = (method: string): Answer => ({
  kind: 'error',
  error: rpcError('internal', `The client sent no call that could carry ${method} in time: ask again during a call`),
})
