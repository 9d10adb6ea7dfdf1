import { Abort, type AbortReason, NEVER } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Frame } from '../../protocol/exchange.ts'
import { isLogSeverity, isMethodOf } from '../../protocol/methods.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeError, encodeNotification, encodeResult, type Incoming, type Message } from '../../wire/json-rpc.ts'
import { SHUTTING_DOWN } from '../http/active-calls.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { invalidMessage } from '../http/read-request.ts'
import { mergeKey } from '../streams/event-log.ts'
import type { RequestEnding } from './client-limits.ts'
import type { ClientSession } from './client-session.ts'
import type { CallOutcome, ResponseWriter } from './response-collector.ts'

const NOT_DURING_CALL = rpcError('methodNotFound', 'This client takes no requests during a call')
const SESSION_ENDED = rpcError('internal', 'The session ended before the answer came')

/** How a transport responds to what a legacy client sent; `R` is what it knows of one request. */
export interface Responder<S extends ClientSession, R = FrontRequest> {
  createWriter(context: FrontContext, session: S, request: R, isBatch: boolean): ResponseWriter
  /** Called if there is nothing to respond to. */
  accept(request: R): void
  /** Called if nothing of the request is accepted. */
  reject(request: R, error: RpcError): void
}

/** Receives a message or batch of a legacy client; `initialize` is handled by each transport. */
export const receiveMessage = <S extends ClientSession, R>(
  context: FrontContext,
  session: S,
  request: R,
  incoming: Incoming,
  responder: Responder<S, R>,
): void => {
  if (incoming.kind === 'batch') return receiveBatch(context, session, request, incoming.messages, responder)
  if (incoming.kind === 'request')
    return register(session, incoming, responder.createWriter(context, session, request, false))(context)
  receiveOneWay(context, session, incoming)
  responder.accept(request)
}

const receiveBatch = <S extends ClientSession, R>(
  context: FrontContext,
  session: S,
  request: R,
  messages: readonly Message[],
  responder: Responder<S, R>,
): void => {
  const problem = checkBatch(messages, context.limits.batchSize)
  if (problem) return responder.reject(request, rpcError('invalidRequest', problem))
  const answered = messages.filter(({ kind }) => kind === 'request' || kind === 'invalid')
  for (const message of messages) receiveOneWay(context, session, message)
  if (answered.length === 0) return responder.accept(request)
  const writer = responder.createWriter(context, session, request, true)
  // All are registered first: the writer is done with the last response, and the first may come at once.
  const runs = answered.map(message => register(session, message, writer))
  for (const run of runs) run(context)
}

const checkBatch = (messages: readonly Message[], most: number): string | undefined => {
  const hasResponses = messages.some(({ kind }) => kind === 'response' || kind === 'error')
  if (messages.length > most) return `A batch holds at most ${most} messages`
  if (hasResponses && messages.some(({ kind }) => kind === 'request'))
    return 'A batch must not mix requests and responses'
  if (messages.some(message => message.kind === 'request' && message.method === 'initialize'))
    return 'initialize must not be part of a batch'
  return undefined
}

const receiveOneWay = (context: FrontContext, session: ClientSession, message: Message): void => {
  if (message.kind === 'response') session.questions.answer(message.id, { kind: 'result', result: message.result })
  else if (message.kind === 'error' && message.id)
    session.questions.answer(message.id, { kind: 'error', error: message.error })
  else if (message.kind === 'notification') receiveNotification(context, session, message.method, message.params)
}

const receiveNotification = (context: FrontContext, session: ClientSession, method: string, params: Json): void => {
  if (method === NOTIFICATIONS.initialized) return session.listen()
  if (method === NOTIFICATIONS.progress) return session.questions.progress(params)
  if (method === NOTIFICATIONS.cancelled) return void session.inFlight.cancel(params)
  context.dispatch({ kind: 'notification', method, params, caller: session.caller, signal: NEVER, sink: () => {} })
}

/** Reserves the place of a response; the returned function runs the request. */
const register = (
  session: ClientSession,
  message: Message,
  writer: ResponseWriter,
): ((context: FrontContext) => void) => {
  const call = new Abort()
  const index = writer.expect(call)
  const reject = (error: RpcError, id: Json | undefined) => () => writer.respond(index, encodeError(id, error))
  if (message.kind === 'invalid') return reject(invalidMessage(message.reason), message.id)
  if (message.kind !== 'request') return reject(rpcError('invalidRequest'), undefined)
  const { id, method, params } = message
  if (method === 'ping') return () => writer.respond(index, encodeResult(id, Json.empty))
  if (!isMethodOf(method, session.caller.revision))
    return reject(rpcError('methodNotFound', `Method not found: ${method}`), id)
  const conflict = session.inFlight.add(id, params, call)
  if (conflict) return reject(conflict, id)
  const excess = session.subscriptions.reserve(method, params)
  if (excess) {
    session.inFlight.delete(id)
    return reject(excess, id)
  }
  return context => run(context, session, message, call, index, writer)
}

const run = (
  context: FrontContext,
  session: ClientSession,
  { id, method, params }: Message & { kind: 'request' },
  call: Abort,
  index: number,
  writer: ResponseWriter,
): void => {
  const settle = (outcome: CallOutcome, ending: RequestEnding) => {
    if (!session.inFlight.delete(id)) return
    session.subscriptions.settle(method, params, ending)
    context.activeCalls.delete(call)
    writer.respond(index, outcome)
  }
  const take = (frame: Frame): void | Promise<void> => {
    switch (frame.kind) {
      case 'notice':
        return writer.send(encodeNotification(frame.method, frame.params), mergeKey(frame.method, frame.params))
      case 'question':
        if (writer.canSendMore) return session.questions.ask(frame, pieces => writer.send(pieces))
        return frame.answer({ kind: 'error', error: NOT_DURING_CALL })
      case 'result':
        if (method === 'logging/setLevel') setLevel(session, params)
        return settle(encodeResult(id, frame.result), 'result')
      case 'failure':
        return settle(encodeError(id, frame.error), 'failure')
    }
  }
  session.listen()
  context.activeCalls.add(call)
  call.onAbort(reason => settle(abortOutcome(id, reason), 'unknown'))
  try {
    context.dispatch({
      kind: 'request',
      method,
      params,
      caller: session.caller,
      signal: call,
      sink: frame => (session.inFlight.get(id) === call ? take(frame) : undefined),
    })
  } catch (error) {
    context.log.error({ err: error }, 'request failed with an internal error')
    settle(encodeError(id, rpcError('internal')), 'failure')
  }
}

/** The response to an aborted request: none if the client cancelled it, or stayed away too long. */
export const abortOutcome = (id: Json, { kind }: AbortReason): CallOutcome => {
  if (kind === 'closing') return encodeError(id, SHUTTING_DOWN)
  return kind === 'gone' ? encodeError(id, SESSION_ENDED) : 'none'
}

const setLevel = (session: ClientSession, params: Json): void => {
  const level = params.get('level')?.asString()
  if (isLogSeverity(level)) session.setLevel(level)
}
