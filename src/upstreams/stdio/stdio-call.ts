import type { AbortReason } from '../../protocol/cancellation.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame, Question } from '../../protocol/exchange.ts'
import { methodRow } from '../../protocol/methods.ts'
import { Json } from '../../wire/json/json.ts'
import { type Message, notificationPieces, requestPieces } from '../../wire/json-rpc.ts'
import type { DeadlineEntry } from '../deadlines.ts'
import { type FailureDetails, toRpcError } from '../failures.ts'
import { Outbox } from '../session/outbox.ts'
import type { Pipe } from './pipe.ts'
import type { StdioLink } from './stdio-link.ts'

/** What a call needs of the conversation it belongs to. */
export interface CallHome {
  readonly link: StdioLink
  /** Calls `call.send` once there is a process to send to, or `call.fail` where there will be none. */
  transmit(call: StdioCall): void
  /** A call was given up because of silence. */
  doubt(pipe: Pipe): void
  /** The params as this server wants them. */
  prepare(params: Json, exchange: Exchange): Json
  /** The last thing that happens to a call, just before its final frame; none if it was aborted. */
  finished(call: StdioCall, frame: Frame | undefined): void
}

const NEVER = Number.POSITIVE_INFINITY

/** One request to a process, from the line that asks to the one frame that ends its exchange. */
export class StdioCall implements DeadlineEntry {
  readonly id: number // also its progress token
  readonly exchange: Exchange
  readonly isListen: boolean
  readonly canBeAsked: boolean
  deadline = NEVER
  slot = -1
  pipe: Pipe | undefined // where it was sent
  readonly #home: CallHome
  readonly #token: Json | undefined // the client's own progress token
  readonly #outbox: Outbox
  #questions = 0
  #isDone = false
  #hasRepeated = false
  #release: () => void = () => {}

  constructor(home: CallHome, exchange: Exchange, id: number) {
    this.id = id
    this.exchange = exchange
    this.isListen = exchange.method === 'subscriptions/listen'
    this.canBeAsked = methodRow(exchange.method)?.asks === true
    this.#home = home
    this.#token = exchange.params.get('_meta')?.get('progressToken')
    this.#outbox = new Outbox(exchange.sink, error => this.#giveUp(error))
  }

  get isDone(): boolean {
    return this.#isDone
  }

  start(): void {
    const { signal } = this.exchange
    if (signal.reason) return this.#home.finished(this, undefined)
    this.#release = signal.onAbort(reason => this.#abort(reason))
    this.#home.link.deadlines.add(this)
    this.#home.transmit(this)
  }

  /** Writes the request, the first time or to the next process. */
  send(pipe: Pipe): void {
    if (this.#isDone) return
    const { link } = this.#home
    if (pipe.child.isGone) return this.lose({ reason: 'upstream_lost', text: 'ended before it could be asked' })
    if (pipe.child.pendingBytes > link.pendingBytes)
      return this.lose({ reason: 'upstream_busy', text: 'does not read what it is sent: try again later' })
    this.pipe = pipe
    this.touch()
    const params = this.#home.prepare(this.#withToken(), this.exchange)
    pipe.send(requestPieces(this.id, this.exchange.method, params))
  }

  /** Its process is gone. What is safe to repeat is repeated once; a listen goes on for as long as it is wanted. */
  lost(loss: FailureDetails): void {
    const mayRepeat = this.isListen || (methodRow(this.exchange.method)?.safe === true && !this.#hasRepeated)
    if (!mayRepeat || loss.reason === 'too_large') return this.lose(loss)
    this.#hasRepeated = true
    this.move()
  }

  /** Goes to another process. */
  move(): void {
    this.pipe = undefined
    this.deadline = NEVER // until it is sent; a start has its own limit
    this.#home.transmit(this)
  }

  lose(loss: FailureDetails): void {
    this.fail(toRpcError(this.#home.link.name, loss))
  }

  fail(error: RpcError): void {
    this.finish({ kind: 'failure', error })
  }

  answered(message: Extract<Message, { kind: 'response' | 'error' | 'invalid' }>): void {
    if (message.kind === 'response') this.finish({ kind: 'result', result: tidy(this.exchange.method, message.result) })
    else if (message.kind === 'error') this.fail(message.error)
    else this.lose({ reason: 'upstream_protocol', text: `answered no JSON-RPC: ${message.reason}` })
  }

  progressed(params: Json): void {
    this.touch()
    if (!this.#token) return
    this.notice('notifications/progress', params.with('progressToken', this.#token))
  }

  notice(method: string, params: Json): void {
    this.touch()
    this.#outbox.put({ kind: 'notice', method, params })
  }

  ask(question: Question): void {
    this.#questions++
    this.touch()
    this.#outbox.put(question)
  }

  /** A question of the server was answered, or is no longer wanted. */
  settled(): void {
    this.#questions--
    if (!this.#isDone) this.touch()
  }

  expire(): void {
    if (this.#isDone) return
    const seconds = this.#home.link.timeoutMs / 1000
    this.#cancel('timed out')
    if (this.pipe) this.#home.doubt(this.pipe)
    this.lose({ reason: 'upstream_timeout', text: `was silent for ${seconds} s after ${this.exchange.method}` })
  }

  finish(frame: Frame): void {
    if (this.#isDone) return
    this.#close(frame)
    this.#outbox.put(frame)
  }

  /** The server gave a sign of life. While it waits for a person, and on a listen, its silence means nothing. */
  touch(): void {
    const { timeoutMs } = this.#home.link
    const mayBeSilent = this.isListen || this.#questions > 0 || timeoutMs === 0
    this.deadline = mayBeSilent ? NEVER : Date.now() + timeoutMs
  }

  #withToken(): Json {
    const { params } = this.exchange
    const meta = this.#token && params.get('_meta')
    return meta ? params.with('_meta', meta.with('progressToken', this.id)) : params
  }

  #giveUp(error: RpcError): void {
    if (this.#isDone) return
    this.#cancel(error.message)
    this.fail(error)
  }

  #abort(reason: AbortReason): void {
    if (this.#isDone) return
    this.#cancel(reason.kind === 'cancelled' ? (reason.text ?? 'cancelled by the client') : reason.kind)
    this.#close(undefined)
  }

  #cancel(reason: string): void {
    const params = Json.of({ requestId: this.id, reason })
    this.pipe?.send(notificationPieces('notifications/cancelled', params))
  }

  #close(frame: Frame | undefined): void {
    this.#isDone = true
    this.#release()
    this.#home.link.deadlines.delete(this)
    this.#home.finished(this, frame)
  }
}

/** `nextCursor: null` makes clients of both SDK generations reject the whole list. */
const tidy = (method: string, result: Json): Json =>
  method.endsWith('/list') && result.get('nextCursor')?.kind === 'null' ? result.without('nextCursor') : result
