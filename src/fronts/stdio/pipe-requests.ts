import { Abort, NEVER } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Caller, Frame } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { errorPieces, type Message, notificationPieces, resultPieces } from '../../wire/json-rpc.ts'
import type { FrontContext } from '../http/front-request.ts'
import type { InFlight } from '../sessions/in-flight.ts'
import { liftEnvelope } from '../stateless/envelope.ts'
import { modernResult, tagged } from '../stateless/modern-result.ts'

type Request = Message & { kind: 'request' }
type Base = Pick<Caller, 'workspace' | 'principal' | 'headers'>

const LISTEN = 'subscriptions/listen'

/** The modern requests of one pipe: each stands alone, and is cancelled by name because there is no stream to close. */
export class PipeRequests {
  readonly #house: FrontContext
  readonly #base: Base
  readonly #send: (pieces: Buffer[]) => void | Promise<void>
  readonly #running: InFlight // with those of the legacy session on the same pipe
  #caller: Caller | undefined // of the last request: notifications do not say who sends them

  constructor(house: FrontContext, base: Base, running: InFlight, send: (pieces: Buffer[]) => void | Promise<void>) {
    this.#house = house
    this.#base = base
    this.#running = running
    this.#send = send
  }

  run(request: Request): void {
    const { id, method, params } = request
    const reading = liftEnvelope(method, params)
    if ('refusal' in reading) return void this.#send(errorPieces(id, reading.refusal.error))
    const abort = new Abort()
    const clash = this.#running.add(id, params, abort)
    if (clash) return void this.#send(errorPieces(id, clash))
    const caller: Caller = { ...this.#base, ...reading.envelope }
    this.#caller = caller
    const isListen = method === LISTEN
    this.#house.active.add(abort, isListen)
    const finish = (pieces: Buffer[] | undefined): void => {
      if (!this.#running.delete(id)) return
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
      sink: frame => (this.#running.get(id) === abort ? this.#take(request, frame, finish) : undefined),
    })
  }

  /** Takes a notification of a client that has only sent modern requests so far. */
  notify({ method, params }: Message & { kind: 'notification' }): void {
    if (!this.#caller) return
    this.#house.dispatch({ kind: 'notification', method, params, caller: this.#caller, signal: NEVER, sink: () => {} })
  }

  /** True for the cancellation of a request that is running. */
  cancel({ method, params }: Message & { kind: 'notification' }): boolean {
    if (method !== 'notifications/cancelled') return false
    const id = params.get('requestId')
    const abort = id && this.#running.get(id)
    const text = params.get('reason')?.asString()
    abort?.abort({ kind: 'cancelled', ...(text !== undefined && { text }) })
    return abort !== undefined
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
