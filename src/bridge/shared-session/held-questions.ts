import { isSameUser } from '../../protocol/callers.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Answer, Caller, Question } from '../../protocol/exchange.ts'

const HOLD_MS = 60_000 // servers on the SDKs give up by themselves after as long
const MOST_HELD = 100

interface Held {
  readonly question: Question
  readonly user: Caller | undefined // whose it is, if it came with a call
  readonly release: () => void
}

/** Questions that no running call can carry: they wait for the next one, but not for ever. */
export class HeldQuestions {
  #held: Held[] = []

  hold(question: Question, user?: Caller): void {
    if (question.withdrawn.reason) return
    if (this.#held.length >= MOST_HELD) return question.answer(unanswered(question.method))
    const drop = (): void => {
      release()
      this.#held = this.#held.filter(held => held.question !== question)
    }
    const timer = setTimeout(() => {
      drop()
      question.answer(unanswered(question.method))
    }, HOLD_MS)
    timer.unref()
    const forget = question.withdrawn.onAbort(drop)
    const release = (): void => {
      clearTimeout(timer)
      forget()
    }
    this.#held.push({ question, user, release })
  }

  /** Hands over those a call of that caller may carry: not what was asked on the call of another user. */
  takeFor(caller: Caller): Question[] {
    const taken = this.#held.filter(({ user }) => !user || isSameUser(user, caller))
    this.#held = this.#held.filter(held => !taken.includes(held))
    return taken.map(({ question, release }) => {
      release()
      return question
    })
  }
}

/** An error, and never `cancel`: no user has seen the question. */
export const unanswered = (method: string): Answer => ({
  kind: 'error',
  error: rpcError('internal', `The client sent no call that could carry ${method} in time: ask again during a call`),
})
