import { Abort } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Answer, Question } from '../../protocol/exchange.ts'
import type { MessageTap, TappedServer } from '../../protocol/message-tap.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeAnswer, encodeNotification, idKey, type Message } from '../../wire/json-rpc.ts'

/** A request of a server. */
export type ServerRequest = Extract<Message, { kind: 'request' }>

interface OpenQuestion {
  readonly request: ServerRequest
  owner: object // the call or the listener it was sent to
  tap: MessageTap | undefined // of the exchange that carries it first
  readonly withdrawn: Abort
  readonly events: QuestionEvents
}

/** What becomes of a question. */
interface QuestionEvents {
  settled(): void
  /** The server has not taken the answer, and still waits for it. */
  answerLost?(): void
}

type Post = (pieces: Buffer[], what: string, onLost?: () => void) => void

const MOST_OPEN = 1024

/** The requests of one server (elicitation, sampling, roots) that wait for an answer of the client. */
export class Questions {
  readonly #post: Post
  readonly #unsent: () => number
  readonly #server: () => TappedServer
  readonly #open = new Map<string, OpenQuestion>()

  /** `unsent`: how many answers the server has not taken yet; they count as open. */
  constructor(post: Post, unsent: () => number, server: () => TappedServer) {
    this.#post = post
    this.#unsent = unsent
    this.#server = server
  }

  get size(): number {
    return this.#open.size
  }

  /** Opens a question; undefined if the same is open already (on a resumed stream), or too many are. */
  ask(request: ServerRequest, owner: object, events: QuestionEvents): Question | undefined {
    const key = idKey(request.id)
    if (this.#open.has(key)) return undefined
    if (this.#open.size + this.#unsent() >= MOST_OPEN) {
      this.#send(request, { kind: 'error', error: TOO_MANY })
      return undefined
    }
    const open: OpenQuestion = { request, owner, tap: undefined, withdrawn: new Abort(), events }
    this.#open.set(key, open)
    return {
      kind: 'question',
      method: request.method,
      params: request.params,
      withdrawn: open.withdrawn,
      answer: answer => this.#answer(key, open, answer),
      recordIn: tap => this.#recordIn(tap, open),
    }
  }

  /** The server cancelled the request with that id. */
  withdraw(id: Json | undefined): void {
    const key = id && idKey(id)
    const open = key === undefined ? undefined : this.#open.get(key)
    if (open && key !== undefined) this.#drop(key, open)
  }

  /** The call has ended, but the server still waits for these answers. */
  handOver(owner: object, newOwner: object): void {
    for (const open of this.#open.values()) if (open.owner === owner) open.owner = newOwner
  }

  /** The client cancelled the call: its questions are refused. A question for roots is about the session, not the call. */
  abandon(owner: object, newOwner: object): void {
    for (const open of this.#open.values())
      if (open.owner === owner && open.request.method === 'roots/list') open.owner = newOwner
    this.#refuse(owner, ({ method }) => (method === 'elicitation/create' ? CANCELLED : CALL_CANCELLED))
  }

  /** The listener has left, and no user has decided anything. */
  leave(owner: object): void {
    this.#refuse(owner, () => CLIENT_LEFT)
  }

  /** The questions belong to a task, which goes on: the server asks again when its result is requested again. */
  forget(owner: object): void {
    for (const [key, open] of [...this.#open]) if (open.owner === owner) this.#drop(key, open)
  }

  /** The server has lost its state, and with it what it asked. */
  clear(): void {
    for (const [key, open] of [...this.#open]) this.#drop(key, open)
  }

  #answer(key: string, open: OpenQuestion, answer: Answer): void {
    if (this.#open.get(key) !== open) return
    const isLast = answer.kind !== 'progress'
    if (isLast) this.#open.delete(key)
    this.#send(open.request, answer, open.tap, () => open.events.answerLost?.())
    if (isLast) open.events.settled()
  }

  #refuse(owner: object, answerQuestion: (request: ServerRequest) => Answer): void {
    for (const [key, open] of [...this.#open]) {
      if (open.owner !== owner) continue
      this.#drop(key, open)
      this.#send(open.request, answerQuestion(open.request), open.tap)
    }
  }

  #drop(key: string, open: OpenQuestion): void {
    this.#open.delete(key)
    open.events.settled()
    open.withdrawn.abort({ kind: 'cancelled' })
  }

  #recordIn(tap: MessageTap, open: OpenQuestion): void {
    if (open.tap) return
    open.tap = tap
    tap.serverMessage(this.#server(), 'in', 'question', open.request.method, open.request)
  }

  #send({ id, method, params }: ServerRequest, answer: Answer, tap?: MessageTap, onLost?: () => void): void {
    if (answer.kind !== 'progress') {
      const pieces = encodeAnswer(id, answer)
      tap?.serverMessage(this.#server(), 'out', 'answer', method, pieces)
      return this.#post(pieces, `${answer.kind === 'result' ? 'answer to' : 'refusal of'} ${method}`, onLost)
    }
    const token = params.get('_meta')?.get('progressToken')
    if (!token) return
    const progress = answer.params.with('progressToken', token)
    this.#post(encodeNotification(NOTIFICATIONS.progress, progress), `progress of ${method}`)
  }
}

const TOO_MANY = rpcError(
  'internal',
  `${MOST_OPEN} questions of this session wait for an answer already: ask again when some have been answered`,
  Json.of({ reason: 'too_many_questions' }),
)

const refusal = (message: string): Answer => ({ kind: 'error', error: rpcError('internal', message) })

/** Elicitation has a result for a user who went away; the other methods have only an error. */
const CANCELLED: Answer = { kind: 'result', result: Json.of({ action: 'cancel' }) }
const CALL_CANCELLED = refusal('The request this belonged to was cancelled')
const CLIENT_LEFT = refusal('The client has left')
