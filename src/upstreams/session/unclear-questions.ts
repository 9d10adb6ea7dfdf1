import { rpcError } from '../../protocol/errors.ts'
import type { Exchange, Question } from '../../protocol/exchange.ts'
import { sharerOf } from './sharers.ts'

/** A call that a question may belong to. */
export interface AskableCall {
  readonly exchange: Exchange
  readonly canBeAsked: boolean
  ask(question: Question): void | Promise<void>
  /** A question of this call was answered or withdrawn. */
  settleQuestion(): void
  /** The server has not taken the answer to a question of this call. */
  loseAnswer(): void
}

const WAIT_MS = 30_000 // servers on the SDKs wait 60 s; calls of two clients may wait for each other's questions

interface UnclearQuestion {
  readonly question: Question
  readonly calls: Set<AskableCall> // that may have caused it
  readonly assign: (call: AskableCall) => void
}

/** Whether all calls are of one client. */
export const areOfOneSharer = (calls: readonly AskableCall[]): boolean => {
  const [first] = calls
  const key = first && sharerOf(first.exchange.caller)
  return calls.every(({ exchange }) => sharerOf(exchange.caller) === key)
}

/**
 * Questions that arrived while calls of several clients ran, on a channel that does not tell which call a question belongs
 * to. The call that caused a question waits for its answer: when the server has answered the calls of all clients but one,
 * the question is that client's. Until then no client sees it.
 */
export class UnclearQuestions {
  #waiting: UnclearQuestion[] = []

  add(question: Question, calls: readonly AskableCall[], assign: (call: AskableCall) => void): void {
    const unclear: UnclearQuestion = { question, calls: new Set(calls), assign }
    this.#waiting.push(unclear)
    const timer = setTimeout(() => {
      if (this.#remove(unclear)) question.answer({ kind: 'error', error: UNCLEAR })
    }, WAIT_MS)
    timer.unref()
    question.withdrawn.onAbort(() => void this.#remove(unclear))
  }

  /** The server has answered the call, or will not: then the call may have been the one that asked. */
  ended(call: AskableCall, isAnswered: boolean): void {
    for (const unclear of [...this.#waiting]) {
      if (!unclear.calls.delete(call)) continue
      const left = [...unclear.calls]
      const latest = left.at(-1)
      if (isAnswered && latest && !areOfOneSharer(left)) continue
      this.#remove(unclear)
      if (isAnswered && latest) unclear.assign(latest)
      else unclear.question.answer({ kind: 'error', error: UNCLEAR })
    }
  }

  #remove(unclear: UnclearQuestion): boolean {
    const before = this.#waiting.length
    this.#waiting = this.#waiting.filter(other => other !== unclear)
    return this.#waiting.length < before
  }
}

/** The answer to a question that cannot be attributed to a client. */
export const UNCLEAR = rpcError(
  'internal',
  'Several clients share this session, and the gateway cannot tell which of them to ask: ask again during a call',
)
