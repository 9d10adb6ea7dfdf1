import type { Question } from '../../protocol/exchange.ts'

interface Hooks {
  /** The first question is open: the session must stay. */
  some(): void
  /** No question is open any more. */
  none(): void
}

/** The questions of one session that wait for an answer, whichever call carries them and whether it still runs. */
export class OpenQuestions {
  readonly #hooks: Hooks
  readonly #open = new Set<Question>()

  constructor(hooks: Hooks) {
    this.#hooks = hooks
  }

  get size(): number {
    return this.#open.size
  }

  /** Counts the question until it is answered or withdrawn; it must be asked in the returned form. */
  add(question: Question): Question {
    if (question.withdrawn.reason) return question
    const close = (): void => {
      if (!this.#open.delete(question)) return
      forget()
      if (this.#open.size === 0) this.#hooks.none()
    }
    this.#open.add(question)
    const forget = question.withdrawn.onAbort(close)
    if (this.#open.size === 1) this.#hooks.some()
    return {
      ...question,
      answer: reply => {
        question.answer(reply)
        if (reply.kind !== 'progress') close()
      },
    }
  }
}
