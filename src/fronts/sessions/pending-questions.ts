import { answerTo } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Answer, Question } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { idKey, notificationPieces, requestPieces } from '../../wire/json-rpc.ts'

interface Open {
  readonly question: Question
  readonly forget: () => void
}

type Send = (pieces: Buffer[]) => void | Promise<void>

/** The questions a legacy client has been asked and has not answered, under ids of our own. */
export class PendingQuestions {
  readonly #open = new Map<string, Open>()
  #asked = 0

  /** Sends a question as a request to the client; takes it back when the asker does. */
  ask(question: Question, send: Send): void | Promise<void> {
    const id = `gw-${++this.#asked}`
    const key = idKey(Json.of(id))
    const forget = question.withdrawn.onAbort(() => {
      if (!this.#open.delete(key)) return
      void send(notificationPieces('notifications/cancelled', Json.of({ requestId: id })))
    })
    if (question.withdrawn.reason) return
    this.#open.set(key, { question, forget })
    return send(requestPieces(id, question.method, question.params))
  }

  /** Takes an answer; false if nobody asked. */
  answer(id: Json, reply: Answer): boolean {
    const key = idKey(id)
    const open = this.#open.get(key)
    if (!open) return false
    this.#open.delete(key)
    open.forget()
    answerTo(open.question, reply)
    return true
  }

  /** Hands on progress that the client reports for a question; the token it was given tells which. */
  progress(params: Json): void {
    const token = params.get('progressToken')
    if (!token) return
    const key = idKey(token)
    for (const { question } of this.#open.values()) {
      const given = question.params.at('_meta', 'progressToken')
      if (given && idKey(given) === key) return answerTo(question, { kind: 'progress', params })
    }
  }

  /** The client will answer nothing any more. */
  abandon(): void {
    const open = [...this.#open.values()]
    this.#open.clear()
    for (const { question, forget } of open) {
      forget()
      answerTo(question, { kind: 'error', error: rpcError('internal', 'The client has left') })
    }
  }
}
