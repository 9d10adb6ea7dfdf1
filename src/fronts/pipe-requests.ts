import { Abort, NEVER } from '../protocol/abort.ts'
import { rpcError } from '../protocol/errors.ts'
import type { Caller, Frame } from '../protocol/exchange.ts'
import { Json } from '../wire/json.ts'
import { errorPieces, idKey, type Message, notificationPieces, resultPieces } from '../wire/json-rpc.ts'
import { liftEnvelope } from './envelope.ts'
import { modernResult, tagged } from './modern-result.ts'
import type { House } from './visit.ts'

type Request = Message & { kind: 'request' }
type Base = Pick<Caller, 'workspace' | 'principal' | 'headers'>

const LISTEN = 'subscriptions/listen'

/** The modern requests of one pipe: each stands alone, and is cancelled by name because there is no stream to close. */
export class PipeRequests {
  readonly #house: House
  readonly #base: Base
  readonly #send: (pieces: Buffer[]) => void | Promise<void>
  readonly #running = new Map<string, Abort>()
  #caller: Caller | undefined // of the last request: notifications do not say who sends them

  constructor(house: House, base: Base, send: (pieces: Buffer[]) => void | Promise<void>) {
    this.#house = house
    this.#base = base
    this.#send = send
  }

  has(id: Json): boolean {
    return this.#running.has(idKey(id))
  }

  run(request: Request): void {
    const { id, method, params } = request
    const key = idKey(id)
    const reading = liftEnvelope(method, params)
    if ('refusal' in reading) return void this.#send(errorPieces(id, reading.refusal.error))
    if (this.#running.has(key))
      return void this.#send(errorPieces(id, rpcError('invalidRequest', 'A request with this id is still running')))
    const caller: Caller = { ...this.#base, ...reading.envelope }
    this.#caller = caller
    const abort = new Abort()
    const isListen = method === LISTEN
    this.#running.set(key, abort)
    this.#house.active.add(abort, isListen)
    const finish = (pieces: Buffer[] | undefined): void => {
      if (!this.#running.delete(key)) return
      this.#house.active.delete(abort)
      if (pieces) void this.#send(pieces)
    }
    abort.onAbort(({ kind }) => finish(kind === 'closing' ? lastWord(id, isListen) : undefined))
    this.#house.dispatch({
      kind: 'request',
      method,
      params,
      caller,
      signal: abort,
      sink: frame => (this.#running.get(key) === abort ? this.#take(request, frame, finish) : undefined),
    })
  }

  /** Takes a notification of a client that has only sent modern requests so far. */
  notify({ method, params }: Message & { kind: 'notification' }): void {
    if (!this.#caller) return
    this.#house.dispatch({ kind: 'notification', method, params, caller: this.#caller, signal: NEVER, sink: () => {} })
  }

  /** True for the cancellation of one of these requests. */
  cancel({ method, params }: Message & { kind: 'notification' }): boolean {
    if (method !== 'notifications/cancelled') return false
    const id = params.get('requestId')
    const abort = id && this.#running.get(idKey(id))
    const text = params.get('reason')?.asString()
    abort?.abort({ kind: 'cancelled', ...(text !== undefined && { text }) })
    return abort !== undefined
  }

  end(): void {
    for (const abort of [...this.#running.values()]) abort.abort({ kind: 'gone' })
  }

  #take({ id, method }: Request, frame: Frame, finish: (pieces: Buffer[]) => void): void | Promise<void> {
    switch (frame.kind) {
      case 'notice':
        return this.#send(notificationPieces(frame.method, method === LISTEN ? tagged(frame.params, id) : frame.params))
      case 'question':
        return frame.answer({ kind: 'error', error: rpcError('methodNotFound', 'This client takes no requests') })
      case 'result':
        return finish(resultPieces(id, modernResult(method, frame.result, id)))
      case 'failure':
        return finish(errorPieces(id, frame.error))
    }
  }
}

const lastWord = (id: Json, isListen: boolean): Buffer[] =>
  isListen
    ? resultPieces(id, tagged(Json.of({ resultType: 'complete' }), id))
    : errorPieces(id, rpcError('internal', 'The gateway is shutting down; send the request again'))
