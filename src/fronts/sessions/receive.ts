import { Abort, NEVER } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Frame, RequestOrigin } from '../../protocol/exchange.ts'
import { isLogSeverity, isMethodOf } from '../../protocol/methods.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeError, encodeNotification, encodeResult, type Incoming, type Message } from '../../wire/json-rpc.ts'
import type { FrontRequest } from '../http/front-request.ts'
import { invalidMessage } from '../http/read-request.ts'
import { withTraceContext } from '../http/trace-headers.ts'
import { mergeKey } from '../streams/event-log.ts'
import { type RequestEnding, SESSION_REQUESTS, SET_LEVEL } from './client-limits.ts'
import type { ClientSession } from './client-session.ts'
import {
  abortOutcome,
  type CallOutcome,
  type MessageSource,
  type Respond,
  type ResponseWriter,
} from './response-collector.ts'

const NOT_DURING_CALL = rpcError('methodNotFound', 'This client takes no requests during a call')

/** How a transport responds to what a legacy client sent; `R` is what it knows of one request. */
export interface Responder<S extends ClientSession, R = FrontRequest> {
  createWriter(session: S, request: R, isBatch: boolean): ResponseWriter
  /** What the transport knows of the sender; absent over stdio. */
  sourceOf?(request: R): MessageSource
  /** Called if there is nothing to respond to. */
  accept(request: R): void
  /** Called if nothing of the request is accepted. */
  reject(request: R, error: RpcError): void
}

type RequestMessage = Message & { readonly kind: 'request' }
type AnsweredMessage = RequestMessage | (Message & { readonly kind: 'invalid' })

/** Receives a message or batch of a legacy client; `initialize` is handled by each transport. */
export const receiveMessage = <S extends ClientSession, R>(
  session: S,
  request: R,
  incoming: Incoming,
  responder: Responder<S, R>,
): void => {
  if (incoming.kind === 'batch') return receiveBatch(session, request, incoming.messages, responder)
  if (incoming.kind === 'request')
    return register(session, incoming, responder.createWriter(session, request, false), responder.sourceOf?.(request))()
  receiveOneWay(session, incoming)
  responder.accept(request)
}

const receiveBatch = <S extends ClientSession, R>(
  session: S,
  request: R,
  messages: readonly Message[],
  responder: Responder<S, R>,
): void => {
  const problem = checkBatch(messages, session.context.limits.batchSize)
  if (problem) return responder.reject(request, rpcError('invalidRequest', problem))
  const answered = messages.filter(
    (message): message is AnsweredMessage => message.kind === 'request' || message.kind === 'invalid',
  )
  for (const message of messages) receiveOneWay(session, message)
  if (answered.length === 0) return responder.accept(request)
  const writer = responder.createWriter(session, request, true)
  // All are registered first: the writer is done with the last response, and the first may come at once.
  const source = responder.sourceOf?.(request)
  const runs = answered.map(message => register(session, message, writer, source))
  for (const run of runs) run()
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

const receiveOneWay = (session: ClientSession, message: Message): void => {
  if (message.kind === 'response') session.questions.answer(message.id, { kind: 'result', result: message.result })
  else if (message.kind === 'error' && message.id)
    session.questions.answer(message.id, { kind: 'error', error: message.error })
  else if (message.kind === 'notification') receiveNotification(session, message.method, message.params)
}

const receiveNotification = (session: ClientSession, method: string, params: Json): void => {
  const { context, caller } = session
  if (method === NOTIFICATIONS.initialized) return session.listen()
  if (method === NOTIFICATIONS.progress) return session.questions.progress(params)
  if (method === NOTIFICATIONS.cancelled) return void session.inFlight.cancel(params)
  context.dispatch({ kind: 'notification', method, params, caller, signal: NEVER, sink: () => {} })
}

/** Reserves the place of a response; the returned function runs the request. */
const register = (
  session: ClientSession,
  message: AnsweredMessage,
  writer: ResponseWriter,
  source: MessageSource | undefined,
): (() => void) => {
  const call = new Abort()
  const respond = writer.expect(call, message.id)
  if (message.kind === 'invalid') return () => respond(encodeError(message.id, invalidMessage(message.reason)))
  if (message.method === 'ping') return () => respond(encodeResult(message.id, Json.empty))
  const refusal = admit(session, message, call)
  if (refusal) return () => respond(encodeError(message.id, refusal))
  return () => run(session, message, call, respond, writer, source)
}

/** Reserves what a request needs in its session; returns an error if it cannot have that. */
const admit = (session: ClientSession, { id, method, params }: RequestMessage, call: Abort): RpcError | undefined => {
  if (!isMethodOf(method, session.caller.revision)) return rpcError('methodNotFound', `Method not found: ${method}`)
  const conflict = session.inFlight.add(id, params, call)
  if (conflict) return conflict
  const excess = session.subscriptions.reserve(method, params)
  if (excess) session.inFlight.delete(id)
  return excess
}

const recordResult = ({ tap }: RequestOrigin, id: Json, result: Json, writer: ResponseWriter): void =>
  tap?.clientMessage('out', 'result', undefined, { kind: 'response', id, result }, writer.replyHead?.())

const run = (
  session: ClientSession,
  { id, method, params }: RequestMessage,
  call: Abort,
  respond: Respond,
  writer: ResponseWriter,
  source: MessageSource | undefined,
): void => {
  const { context } = session
  const trace = source?.trace
  const origin: RequestOrigin = {
    id,
    address: source?.address,
    headers: source?.headers,
    initialize: undefined,
    tap: undefined,
  }
  const settle = (outcome: CallOutcome, ending: RequestEnding, error?: RpcError) => {
    if (!session.inFlight.delete(id)) return
    session.subscriptions.settle(method, params, ending)
    if (origin.tap && outcome !== 'none' && ending !== 'result')
      origin.tap.clientMessage('out', 'error', undefined, outcome, writer.replyHead?.(error))
    const saving = ending !== 'failure' && SESSION_REQUESTS.has(method) ? session.save() : undefined
    if (saving) return void saving.then(() => end(outcome))
    end(outcome, error)
  }
  const end = (outcome: CallOutcome, error?: RpcError): void => {
    context.activeCalls.delete(call)
    respond(outcome, error)
  }
  const take = (frame: Frame): void | Promise<void> => {
    switch (frame.kind) {
      case 'notice': {
        const pieces = encodeNotification(frame.method, frame.params)
        origin.tap?.clientMessage('out', 'notification', frame.method, pieces)
        return writer.send(pieces, mergeKey(frame.method, frame.params))
      }
      case 'question':
        if (writer.canSendMore) return session.questions.ask(frame, pieces => writer.send(pieces), origin.tap)
        return frame.answer({ kind: 'error', error: NOT_DURING_CALL })
      case 'result':
        if (method === SET_LEVEL) setLevel(session, params)
        recordResult(origin, id, frame.result, writer)
        return settle(encodeResult(id, frame.result), 'result')
      case 'failure':
        return settle(encodeError(id, frame.error), 'failure', frame.error)
    }
  }
  session.listen()
  context.activeCalls.add(call)
  call.onAbort(reason => settle(abortOutcome(id, reason), 'unknown'))
  try {
    context.dispatch({
      kind: 'request',
      method,
      params: trace ? withTraceContext(params, trace) : params,
      caller: trace ? { ...session.caller, headers: trace } : session.caller,
      signal: call,
      origin,
      record: undefined,
      closeStream: writer.closeStream && (retryMs => writer.closeStream?.(retryMs)),
      sink: frame => (session.inFlight.get(id) === call ? take(frame) : undefined),
    })
  } catch (error) {
    context.log.error({ err: error }, 'request failed with an internal error')
    settle(encodeError(id, rpcError('internal')), 'failure')
  }
}

const setLevel = (session: ClientSession, params: Json): void => {
  const level = params.get('level')?.asString()
  if (isLogSeverity(level)) session.setLevel(level)
}
