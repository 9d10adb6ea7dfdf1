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
export const createModernRequests = (
  { dispatch, activeCalls }: FrontContext,
  base: BaseCaller,
  inFlight: InFlight, // shared with the legacy session on the same pipe
  outbox: LineOutbox,
) => {
  let lastCaller: Caller | undefined // notifications carry no envelope

  const run = (request: RequestMessage): void => {
    const { id, method, params } = request
    const reading = readEnvelope(method, params)
    if ('rejection' in reading) return void outbox.send(encodeError(id, reading.rejection.error))
    const abort = new Abort()
    const conflict = inFlight.add(id, params, abort)
    if (conflict) return void outbox.send(encodeError(id, conflict))
    const caller: Caller = { ...base, ...reading.envelope }
    lastCaller = caller
    if (isListen(method)) activeCalls.addListening(abort, quotaOwner(caller.principal, undefined))
    else activeCalls.add(abort)
    const finish = (pieces?: Buffer[]): void => {
      if (!inFlight.delete(id)) return
      activeCalls.delete(abort)
      if (pieces) void outbox.send(pieces)
    }
    abort.onAbort(({ kind }) => (kind === 'closing' ? take(request, shutdownFrame(method), finish) : finish()))
    dispatch({
      kind: 'request',
      method,
      params,
      caller,
      signal: abort,
      origin: { id },
      sink: frame => (inFlight.get(id) === abort ? take(request, frame, finish) : undefined),
    })
  }

  const take = (
    { id, method }: RequestMessage,
    frame: Frame,
    finish: (pieces: Buffer[]) => void,
  ): void | Promise<void> => {
    switch (frame.kind) {
      case 'notice':
        return outbox.send(encodeNotification(frame.method, modernParams(method, frame.params, id)))
      case 'question':
        return rejectQuestion(frame)
      case 'result':
        return finish(encodeResult(id, modernResult(method, frame.result, id)))
      case 'failure':
        return finish(encodeError(id, frame.error))
    }
  }

  /** Forwards a notification of a client that has sent only modern requests so far. */
  const notify = ({ method, params }: Message & { kind: 'notification' }): void => {
    if (lastCaller)
      dispatch({ kind: 'notification', method, params, caller: lastCaller, signal: NEVER, sink: () => {} })
  }

  return { run, notify }
}
