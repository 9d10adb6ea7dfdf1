import { Abort } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Answer, Question } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { errorPieces, idKey, type Message, notificationPieces, resultPieces } from '../../wire/json-rpc.ts'

type Asked = Extract<Message, { kind: 'request' }>

interface Open {
  readonly asked: Asked
  owner: object // the call or the standing exchange it was asked on
  readonly withdrawn: Abort
  readonly settled: () => void
}

const MOST_OPEN = 1024

/** The requests of one session that wait for an answer of the client. */
export class Questions {
  readonly #post: (pieces: Buffer[], what: string) => void
  readonly #unsent: () => number
  readonly #open = new Map<string, Open>()

  /** `unsent`: how many answers the server has not taken yet; they count as open. */
  constructor(post: (pieces: Buffer[], what: string) => void, unsent: () => number = () => 0) {
    this.#post = post
    this.#unsent = unsent
  }

  get size(): number {
    return this.#open.size
  }

  /** Makes a frame of a server's request; undefined for one that is open already (a replayed stream) or refused. */
  ask(asked: Asked, owner: object, settled: () => void = () => {}): Question | undefined {
    const key = idKey(asked.id)
    if (this.#open.has(key)) return undefined
    if (this.#open.size + this.#unsent() >= MOST_OPEN) {
      this.#send(asked, { kind: 'error', error: TOO_MANY })
      return undefined
    }
    const open: Open = { asked, owner, withdrawn: new Abort(), settled }
    this.#open.set(key, open)
    return {
      kind: 'question',
      method: asked.method,
      params: asked.params,
      withdrawn: open.withdrawn,
      answer: reply => this.#answer(key, open, reply),
    }
  }

  /** The server no longer wants to know. */
  withdraw(id: Json | undefined): void {
    const key = id && idKey(id)
    const open = key === undefined ? undefined : this.#open.get(key)
    if (open && key !== undefined) this.#drop(key, open)
  }

  /** The call is over, but the server still waits for these answers: they outlive it and belong to the heir. */
  handOver(owner: object, heir: object): void {
    for (const open of this.#open.values()) if (open.owner === owner) open.owner = heir
  }

  /** The client dropped that call, and with it what was asked there; roots are about the session, not about a call. */
  abandon(owner: object, heir: object): void {
    for (const open of this.#open.values())
      if (open.owner === owner && open.asked.method === 'roots/list') open.owner = heir
    this.#giveUp(owner, ({ method }) => (method === 'elicitation/create' ? CANCELLED : GONE))
  }

  /** The client that listened has left: no user has decided anything. */
  leave(owner: object): void {
    this.#giveUp(owner, () => LEFT)
  }

  /** The server is gone, and its questions with it. */
  clear(): void {
    for (const [key, open] of [...this.#open]) this.#drop(key, open)
  }

  #answer(key: string, open: Open, reply: Answer): void {
    if (this.#open.get(key) !== open) return
    if (reply.kind !== 'progress') this.#open.delete(key)
    this.#send(open.asked, reply)
    if (reply.kind !== 'progress') open.settled()
  }

  #giveUp(owner: object, answerTo: (asked: Asked) => Answer): void {
    for (const [key, open] of [...this.#open]) {
      if (open.owner !== owner) continue
      this.#drop(key, open)
      this.#send(open.asked, answerTo(open.asked))
    }
  }

  #drop(key: string, open: Open): void {
    this.#open.delete(key)
    open.settled()
    open.withdrawn.abort({ kind: 'cancelled' })
  }

  #send({ id, method, params }: Asked, reply: Answer): void {
    if (reply.kind === 'result') return this.#post(resultPieces(id, reply.result), `answer to ${method}`)
    if (reply.kind === 'error') return this.#post(errorPieces(id, reply.error), `refusal of ${method}`)
    const token = params.get('_meta')?.get('progressToken')
    if (!token) return
    const progress = reply.params.with('progressToken', token)
    this.#post(notificationPieces('notifications/progress', progress), `progress of ${method}`)
  }
}

const TOO_MANY = rpcError(
  'internal',
  `${MOST_OPEN} questions of this session wait for an answer already: ask again when some have been answered`,
  Json.of({ reason: 'too_many_questions' }),
)

const refused = (message: string): Answer => ({ kind: 'error', error: rpcError('internal', message) })

/** Elicitation has a word for a user who went away; the others have an error. */
const CANCELLED: Answer = { kind: 'result', result: Json.of({ action: 'cancel' }) }
const GONE = refused('The request this belonged to was cancelled')
const LEFT = refused('The client has left')
