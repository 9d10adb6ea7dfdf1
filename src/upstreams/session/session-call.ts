import { ERRORS } from '../../protocol/errors.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { methodRow } from '../../protocol/methods.ts'
import { Json } from '../../wire/json/json.ts'
import { type Message, notificationPieces } from '../../wire/json-rpc.ts'
import type { HttpLink } from '../http/http-link.ts'
import type { ResponseEnd } from '../http/response-reader.ts'
import { Call } from './call.ts'
import type { Questions } from './questions.ts'

/** What a call needs of the session it belongs to. */
export interface Home {
  readonly link: HttpLink
  readonly questions: Questions
  post(pieces: Buffer[], what: string): void
  strayed(message: Message): void
  finished(call: SessionCall, frame: Frame | undefined): void
}

/** A call within a legacy session: its server may ask, and must be told of a cancellation. */
export abstract class SessionCall extends Call {
  readonly canBeAsked: boolean
  readonly #home: Home
  #questions = 0

  constructor(home: Home, exchange: Exchange, id: number) {
    super(home.link, exchange, id)
    this.#home = home
    this.canBeAsked = methodRow(exchange.method)?.asks === true
  }

  override touch(): void {
    // While the server waits for a person its silence means nothing.
    if (this.#questions > 0) this.hold()
    else super.touch()
  }

  protected asked(message: Extract<Message, { kind: 'request' }>): void | Promise<void> {
    if (message.method === 'ping') return this.strayed(message)
    const question = this.#home.questions.ask(message, this, () => {
      if (--this.#questions === 0 && !this.isDone) this.touch()
    })
    if (!question) return
    this.#questions++
    const waiting = this.deliver(question)
    if (this.#questions > 0) this.hold()
    return waiting
  }

  protected strayed(message: Message): void {
    this.#home.strayed(message)
  }

  protected cancelled(text: string): void {
    const params = Json.of({ requestId: this.id, reason: text })
    this.#home.post(notificationPieces('notifications/cancelled', params), 'cancellation')
  }

  protected finished(frame: Frame | undefined): void {
    this.#home.finished(this, frame)
  }
}

const METHOD_NOT_FOUND = ERRORS.methodNotFound.code

/** Whether a refusal says that the server does not know the session any more. */
export const isSessionGone = ({ status, error }: Extract<ResponseEnd, { kind: 'refused' }>): boolean =>
  (status === 404 && error?.error.code !== METHOD_NOT_FOUND) ||
  (status === 400 && error !== undefined && /session/i.test(error.error.message))
