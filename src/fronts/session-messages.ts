import { Abort } from '../protocol/abort.ts'
import { rpcError } from '../protocol/errors.ts'
import type { Frame } from '../protocol/exchange.ts'
import { isKnownTo, isLevel } from '../protocol/methods.ts'
import { Json } from '../wire/json.ts'
import { errorPieces, type Incoming, idKey, type Message, notificationPieces, resultPieces } from '../wire/json-rpc.ts'
import { mergeName } from './merge-name.ts'
import { sendEmpty, sendError } from './reply.ts'
import type { Session } from './session.ts'
import { SessionReply } from './session-reply.ts'
import type { House, Visit } from './visit.ts'

type Request = Message & { kind: 'request' }

/** Takes what a legacy client POSTed into its session. */
export const receive = (house: House, session: Session, visit: Visit, incoming: Incoming): void => {
  if (incoming.kind === 'batch') return receiveBatch(house, session, visit, incoming.messages)
  if (incoming.kind === 'request')
    return runRequest(house, session, incoming, new SessionReply(house, session, visit, { isBatch: false }))
  takeOneWay(house, session, incoming)
  sendEmpty(visit.response, 202)
}

const receiveBatch = (house: House, session: Session, visit: Visit, messages: readonly Message[]): void => {
  const problem = checkBatch(messages, house.limits.batchSize)
  if (problem) return sendError(visit.response, 400, undefined, rpcError('invalidRequest', problem))
  const answered = messages.filter(({ kind }) => kind === 'request' || kind === 'invalid')
  for (const message of messages) takeOneWay(house, session, message)
  if (answered.length === 0) return sendEmpty(visit.response, 202)
  const reply = new SessionReply(house, session, visit, { isBatch: true })
  // All are announced first: the reply ends with the last answer, and the first may come at once.
  const runs = answered.map(message => announce(session, message, reply))
  for (const run of runs) run(house)
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

const takeOneWay = (house: House, session: Session, message: Message): void => {
  if (message.kind === 'response') session.asks.answer(message.id, { kind: 'result', result: message.result })
  else if (message.kind === 'error' && message.id)
    session.asks.answer(message.id, { kind: 'error', error: message.error })
  else if (message.kind === 'notification') takeNotification(house, session, message.method, message.params)
}

const takeNotification = (house: House, session: Session, method: string, params: Json): void => {
  if (method === 'notifications/initialized') return session.begin()
  if (method === 'notifications/progress') return session.asks.progress(params)
  if (method === 'notifications/cancelled') {
    const id = params.get('requestId')
    const reason = params.get('reason')?.asString()
    if (id) session.running.get(idKey(id))?.abort({ kind: 'cancelled', ...(reason !== undefined && { text: reason }) })
    return
  }
  house.dispatch({ kind: 'notification', method, params, caller: session.caller, signal: new Abort(), sink: () => {} })
}

const runRequest = (house: House, session: Session, request: Request, reply: SessionReply): void =>
  announce(session, request, reply)(house)

/** Reserves the place of an answer; the returned function runs the request. */
const announce = (session: Session, message: Message, reply: SessionReply): ((house: House) => void) => {
  const call = new Abort()
  const index = reply.expect(call)
  const refuse = (error: ReturnType<typeof rpcError>, id: Json | undefined) => () =>
    reply.respond(index, errorPieces(id, error))
  if (message.kind !== 'request') {
    const reason = message.kind === 'invalid' ? `Invalid Request: ${message.reason}` : undefined
    return refuse(rpcError('invalidRequest', reason), message.kind === 'invalid' ? message.id : undefined)
  }
  const { id, method } = message
  if (method === 'ping') return () => reply.respond(index, resultPieces(id, Json.empty))
  if (!isKnownTo(method, session.caller.revision))
    return refuse(rpcError('methodNotFound', `Method not found: ${method}`), id)
  if (session.running.has(idKey(id)))
    return refuse(rpcError('invalidRequest', 'A request with this id is still running in this session'), id)
  session.running.set(idKey(id), call)
  return house => run(house, session, message, call, index, reply)
}

const run = (
  house: House,
  session: Session,
  request: Request,
  call: Abort,
  index: number,
  reply: SessionReply,
): void => {
  const { id, method, params } = request
  const settle = (outcome: Buffer[] | 'none') => {
    if (!session.running.delete(idKey(id))) return
    house.active.delete(call)
    reply.respond(index, outcome)
  }
  const take = (frame: Frame): void | Promise<void> => {
    switch (frame.kind) {
      case 'notice':
        return reply.say(notificationPieces(frame.method, frame.params), mergeName(frame.method, frame.params))
      case 'question':
        if (reply.takesMore) return session.asks.ask(frame, pieces => reply.say(pieces))
        return frame.answer({
          kind: 'error',
          error: rpcError('methodNotFound', 'This client takes no requests during a call'),
        })
      case 'result':
        if (method === 'logging/setLevel') rememberLevel(session, params)
        return settle(resultPieces(id, frame.result))
      case 'failure':
        return settle(errorPieces(id, frame.error))
    }
  }
  session.begin()
  house.active.add(call, false)
  call.onAbort(reason => {
    if (reason.kind !== 'closing') return settle('none')
    settle(errorPieces(id, rpcError('internal', 'The gateway is shutting down; send the request again')))
  })
  house.dispatch({
    kind: 'request',
    method,
    params,
    caller: session.caller,
    signal: call,
    sink: frame => (session.running.get(idKey(id)) === call ? take(frame) : undefined),
  })
}

const rememberLevel = (session: Session, params: Json): void => {
  const level = params.get('level')?.asString()
  if (isLevel(level)) session.setLevel(level)
}
