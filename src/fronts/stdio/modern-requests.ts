import { quotaOwner } from '../../protocol/admission.ts'
import { Abort, NEVER } from '../../protocol/cancellation.ts'
import type { Caller, Frame } from '../../protocol/exchange.ts'
import { encodeError, encodeNotification, encodeResult, type Message } from '../../wire/json-rpc.ts'
import type { FrontContext } from '../http/front-request.ts'
import type { InFlight } from '../sessions/in-flight.ts'
import {
  isListen,
  modernParams,
  modernResult,
  readEnvelope,
  rejectQuestion,
  shutdownFrame,
} from '../stateless/envelope.ts'
import type { LineOutbox } from '../streams/outbox.ts'

type RequestMessage = Message & { kind: 'request' }
type BaseCaller = Pick<Caller, 'workspace' | 'principal' | 'headers'>

/** The 2026-07-28 requests on one pipe: each is independent, and cancelled by its id because it has no stream to close. */
export class ModernRequests {
  readonly #context: FrontContext
  readonly #base: BaseCaller
  readonly #outbox: LineOutbox
  readonly #inFlight: InFlight // shared with the legacy session on the same pipe
  #caller: Caller | undefined // of the last request: notifications carry no envelope

  constructor(context: FrontContext, base: BaseCaller, inFlight: InFlight, outbox: LineOutbox) {
    this.#context = context
    this.#base = base
    this.#inFlight = inFlight
    this.#outbox = outbox
  }

  run(request: RequestMessage): void {
    const { id, method, params } = request
    const reading = readEnvelope(method, params)
    if ('rejection' in reading) return void this.#outbox.send(encodeError(id, reading.rejection.error))
    const abort = new Abort()
    const conflict = this.#inFlight.add(id, params, abort)
    if (conflict) return void this.#outbox.send(encodeError(id, conflict))
    const caller: Caller = { ...this.#base, ...reading.envelope }
    this.#caller = caller
    if (isListen(method)) this.#context.activeCalls.addListening(abort, quotaOwner(caller.principal, undefined))
    else this.#context.activeCalls.add(abort)
    const finish = (pieces?: Buffer[]): void => {
      if (!this.#inFlight.delete(id)) return
      this.#context.activeCalls.delete(abort)
      if (pieces) void this.#outbox.send(pieces)
    }
    abort.onAbort(({ kind }) => (kind === 'closing' ? this.#take(request, shutdownFrame(method), finish) : finish()))
    this.#context.dispatch({
      kind: 'request',
      method,
      params,
      caller,
      signal: abort,
      sink: frame => (this.#inFlight.get(id) === abort ? this.#take(request, frame, finish) : undefined),
    })
  }

  /** Forwards a notification of a client that has sent only modern requests so far. */
  notify({ method, params }: Message & { kind: 'notification' }): void {
    if (!this.#caller) return
    this.#context.dispatch({
      kind: 'notification',
      method,
      params,
      caller: this.#caller,
      signal: NEVER,
      sink: () => {},
    })
  }

  #take({ id, method }: RequestMessage, frame: Frame, finish: (pieces: Buffer[]) => void): void | Promise<void> {
    switch (frame.kind) {
      case 'notice':
        return this.#outbox.send(encodeNotification(frame.method, modernParams(method, frame.params, id)))
      case 'question':
        return rejectQuestion(frame)
      case 'result':
        return finish(encodeResult(id, modernResult(method, frame.result, id)))
      case 'failure':
        return finish(encodeError(id, frame.error))
    }
  }
}
