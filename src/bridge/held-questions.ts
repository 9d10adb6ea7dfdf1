import { rpcError } from '../protocol/errors.ts'
import type { Question } from '../protocol/exchange.ts'

const HOLD_MS = 20_000

interface Held {
  readonly question: Question
  readonly release: () => void
}

/** Questions that came before any call they could belong to: they wait for the next one, but not for ever. */
export class HeldQuestions {
  readonly #whenFewer: () => void
  #held: Held[] = []

  constructor(whenFewer: () => void) {
    this.#whenFewer = whenFewer
  }

  get size(): number {
    return this.#held.length
  }

  hold(question: Question): void {
    if (question.withdrawn.reason) return
    const drop = (): void => {
      release()
      this.#held = this.#held.filter(held => held.question !== question)
      this.#whenFewer()
    }
    const timer = setTimeout(() => {
      drop()
      question.answer({ kind: 'error', error: rpcError('internal', `Nobody was there to answer ${question.method}`) })
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
