import { deliver } from '../protocol/deliver.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import type { Answer, Dispatch, Exchange, Frame, Question } from '../protocol/exchange.ts'
import { Json } from '../wire/json/json.ts'
import type { Waiter, WaitQueue } from './wait-queue.ts'

/** Sends each call when the queue has a slot for it; the slot is released when the call ends in any way. */
export const limitConcurrency =
  (server: string, queue: WaitQueue, send: Dispatch): Dispatch =>
  exchange => {
    if (exchange.signal.reason) return
    const call = new LimitedCall(exchange, queue, send)
    if (!queue.enter(call)) call.reject(busyError(server, queue.waiting))
  }

/** One call on its way through the queue. It gives its slot back exactly once for each time it got one. */
class LimitedCall implements Waiter {
  readonly principal: string
  readonly #exchange: Exchange
  readonly #queue: WaitQueue
  readonly #send: Dispatch
  readonly #stopListening: () => void
  #hasSlot = false
  #isOver = false
  #openQuestions = 0

  constructor(exchange: Exchange, queue: WaitQueue, send: Dispatch) {
    this.principal = exchange.caller.principal ?? exchange.caller.session ?? ''
    this.#exchange = exchange
    this.#queue = queue
    this.#send = send
    this.#stopListening = exchange.signal.onAbort(() => {
      queue.leave(this)
      queueMicrotask(() => this.#end()) // the server receives the cancellation before the next call
    })
  }

  start(): void {
    this.#hasSlot = true
    this.#send({ ...this.#exchange, sink: frame => this.#receive(frame) })
  }

  reject(error: RpcError): void {
    this.#stopListening()
    void deliver(this.#exchange.sink, { kind: 'failure', error })
  }

  #receive(frame: Frame): void | Promise<void> {
    if (frame.kind === 'question') return this.#exchange.sink(this.#pauseDuring(frame))
    if (frame.kind === 'result' || frame.kind === 'failure') {
      this.#stopListening()
      this.#end()
    }
    return this.#exchange.sink(frame)
  }

  /** To answer a question, the client may have to call this very server: a call that asks must not block that. */
  #pauseDuring(question: Question): Question {
    let isOpen = true
    this.#openQuestions++
    this.#release()
    const close = (): void => {
      if (!isOpen) return
      isOpen = false
      if (--this.#openQuestions > 0 || this.#isOver) return
      this.#hasSlot = true
      this.#queue.resume()
    }
    question.withdrawn.onAbort(close)
    const answer = (reply: Answer): void => {
      if (reply.kind !== 'progress') close()
      question.answer(reply)
    }
    return { ...question, answer }
  }

  #end(): void {
    this.#isOver = true
    this.#release()
  }

  #release(): void {
    if (!this.#hasSlot) return
    this.#hasSlot = false
    this.#queue.release()
  }
}

const busyError = (server: string, waiting: number): RpcError =>
  rpcError(
    'internal',
    `Server "${server}" is busy: ${waiting} calls wait for it already. Try again later`,
    Json.of({ reason: 'upstream_busy', upstream: server }),
  )
