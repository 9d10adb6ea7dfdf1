import { rpcError } from '../protocol/errors.ts'
import type { Answer, Question } from '../protocol/exchange.ts'

const HOLD_MS = 60_000 // servers on the SDKs give up by themselves after as long
const MOST_HELD = 100

interface Held {
  readonly question: Question
  readonly release: () => void
}

/** Questions that no running call can carry: they wait for the next one, but not for ever. */
export class HeldQuestions {
  #held: Held[] = []

  hold(question: Question): void {
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
    this.#held.push({ question, release })
  }

  /** Hands them all over. */
  take(): Question[] {
    return this.#held.splice(0).map(({ question, release }) => {
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
