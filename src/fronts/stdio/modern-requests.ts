import { quotaOwner } from '../../protocol/admission.ts'
import { Abort, NEVER } from '../../protocol/cancellation.ts'
import type { Caller, Frame, RequestOrigin } from '../../protocol/exchange.ts'
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
    const origin: RequestOrigin = { id, tap: undefined }
    lastCaller = caller
    if (isListen(method)) activeCalls.addListening(abort, quotaOwner(caller.principal, undefined))
    else activeCalls.add(abort)
    const finish = (pieces?: Buffer[]): void => {
      if (!inFlight.delete(id)) return
      activeCalls.delete(abort)
      if (pieces) void outbox.send(pieces)
    }
    abort.onAbort(({ kind }) => (kind === 'closing' ? take(request, origin, shutdownFrame(method), finish) : finish()))
    dispatch({
      kind: 'request',
      method,
      params,
      caller,
      signal: abort,
      origin,
      sink: frame => (inFlight.get(id) === abort ? take(request, origin, frame, finish) : undefined),
    })
  }

  const take = (
    { id, method }: RequestMessage,
    { tap }: RequestOrigin,
    frame: Frame,
    finish: (pieces: Buffer[]) => void,
  ): void | Promise<void> => {
    const end = (kind: 'result' | 'error', pieces: Buffer[]): void => {
      tap?.clientMessage('out', kind, undefined, pieces)
      finish(pieces)
    }
    switch (frame.kind) {
      case 'notice': {
        const pieces = encodeNotification(frame.method, modernParams(method, frame.params, id))
        tap?.clientMessage('out', 'notification', frame.method, pieces)
        return outbox.send(pieces)
      }
      case 'question':
        return rejectQuestion(frame)
      case 'result':
        return end('result', encodeResult(id, modernResult(method, frame.result, id)))
      case 'failure':
        return end('error', encodeError(id, frame.error))
    }
  }

  /** Forwards a notification of a client that has sent only modern requests so far. */
  const notify = ({ method, params }: Message & { kind: 'notification' }): void => {
    if (lastCaller)
      dispatch({ kind: 'notification', method, params, caller: lastCaller, signal: NEVER, sink: () => {} })
  }

  return { run, notify }
}
