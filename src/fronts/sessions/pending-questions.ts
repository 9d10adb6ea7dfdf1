import { answerQuestion } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Answer, Question } from '../../protocol/exchange.ts'
import type { MessageTap } from '../../protocol/message-tap.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeAnswer, encodeNotification, encodeRequest, idKey } from '../../wire/json-rpc.ts'

interface PendingQuestion {
  readonly question: Question
  readonly unlisten: () => void
  readonly tap: MessageTap | undefined // of the exchange that carries it
}

type Send = (pieces: Buffer[]) => void | Promise<void>

/** The questions that were sent to a legacy client and not answered yet, under ids of the gateway. */
export class PendingQuestions {
  readonly #pending = new Map<string, PendingQuestion>()
  #prefix = 'gw-'
  #count = 0

  /** Ids differ from those of former processes: an answer to one of their questions must not answer another. */
  startAt(epoch: number): void {
    this.#prefix = `gw-${epoch}-`
  }

  /** Sends a question as a request to the client; cancels it if the server withdraws it. */
  ask(question: Question, send: Send, tap?: MessageTap): void | Promise<void> {
    const id = `${this.#prefix}${++this.#count}`
    const key = idKey(Json.of(id))
    const unlisten = question.withdrawn.onAbort(() => {
      if (!this.#pending.delete(key)) return
      const cancellation = encodeNotification(NOTIFICATIONS.cancelled, Json.of({ requestId: id }))
      tap?.clientMessage('out', 'notification', NOTIFICATIONS.cancelled, cancellation)
      void send(cancellation)
    })
    if (question.withdrawn.reason) return
    this.#pending.set(key, { question, unlisten, tap })
    const pieces = encodeRequest(id, question.method, question.params)
    tap?.clientMessage('out', 'question', question.method, pieces)
    return send(pieces)
  }

  /** Forwards the client's answer; one to an unknown id is dropped. */
  answer(id: Json, answer: Answer): void {
    const key = idKey(id)
    const pending = this.#pending.get(key)
    if (!pending) return
    this.#pending.delete(key)
    pending.unlisten()
    if (pending.tap && answer.kind !== 'progress')
      pending.tap.clientMessage('in', 'answer', pending.question.method, encodeAnswer(id, answer))
    answerQuestion(pending.question, answer)
  }

  /** Forwards progress that the client reports for a question, found by its progress token. */
  progress(params: Json): void {
    const token = params.get('progressToken')
    if (!token) return
    const key = idKey(token)
    for (const { question } of this.#pending.values()) {
      const given = question.params.at('_meta', 'progressToken')
      if (given && idKey(given) === key) return answerQuestion(question, { kind: 'progress', params })
    }
  }

  /** Fails all questions: the client has disconnected. */
  abandon(): void {
    const pending = [...this.#pending.values()]
    this.#pending.clear()
    for (const { question, unlisten } of pending) {
      unlisten()
      answerQuestion(question, { kind: 'error', error: rpcError('internal', 'The client has disconnected') })
    }
  }
}
