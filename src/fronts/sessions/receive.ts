import { Abort, type AbortReason } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Frame } from '../../protocol/exchange.ts'
import { isKnownTo, isLevel } from '../../protocol/methods.ts'
import { Json } from '../../wire/json/json.ts'
import { errorPieces, type Incoming, type Message, notificationPieces, resultPieces } from '../../wire/json-rpc.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { mergeName } from '../streams/merge-name.ts'
import type { Outcome } from './answers.ts'
import type { ClientSession } from './client-session.ts'
import type { Ending } from './subscribed.ts'

type Request = Message & { kind: 'request' }

/** Where the answers to what a client sent at once go. */
export interface Reply {
  /** False: the client can only take the answer itself. */
  readonly takesMore: boolean
  /** Announces a request; the returned number names it in `respond`. */
  expect(call: Abort): number
  /** Says something that is not an answer. */
  say(pieces: Buffer[], merge?: string): void | Promise<void>
  /** Gives the outcome of one request. */
  respond(index: number, outcome: Outcome): void
}

/** How a door answers what was sent to it, with whatever it needs to know of one visit. */
export interface Manner<C extends ClientSession, V = FrontRequest> {
  reply(house: FrontContext, conversation: C, visit: V, isBatch: boolean): Reply
  /** There is nothing to answer. */
  accept(visit: V): void
  /** None of it is taken. */
  refuse(visit: V, error: RpcError): void
}

/** Takes what a legacy client sent; `initialize` is the door's own business. */
export const receive = <C extends ClientSession, V>(
  house: FrontContext,
  conversation: C,
  visit: V,
  incoming: Incoming,
  manner: Manner<C, V>,
): void => {
  if (incoming.kind === 'batch') return receiveBatch(house, conversation, visit, incoming.messages, manner)
  if (incoming.kind === 'request')
    return announce(conversation, incoming, manner.reply(house, conversation, visit, false))(house)
  takeOneWay(house, conversation, incoming)
  manner.accept(visit)
}

const receiveBatch = <C extends ClientSession, V>(
  house: FrontContext,
  conversation: C,
  visit: V,
  messages: readonly Message[],
  manner: Manner<C, V>,
): void => {
  const problem = checkBatch(messages, house.limits.batchSize)
  if (problem) return manner.refuse(visit, rpcError('invalidRequest', problem))
  const answered = messages.filter(({ kind }) => kind === 'request' || kind === 'invalid')
  for (const message of messages) takeOneWay(house, conversation, message)
  if (answered.length === 0) return manner.accept(visit)
  const reply = manner.reply(house, conversation, visit, true)
  // All are announced first: the reply ends with the last answer, and the first may come at once.
  const runs = answered.map(message => announce(conversation, message, reply))
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

const takeOneWay = (house: FrontContext, conversation: ClientSession, message: Message): void => {
  if (message.kind === 'response') conversation.asks.answer(message.id, { kind: 'result', result: message.result })
  else if (message.kind === 'error' && message.id)
    conversation.asks.answer(message.id, { kind: 'error', error: message.error })
  else if (message.kind === 'notification') takeNotification(house, conversation, message.method, message.params)
}

const takeNotification = (house: FrontContext, conversation: ClientSession, method: string, params: Json): void => {
  if (method === 'notifications/initialized') return conversation.begin()
  if (method === 'notifications/progress') return conversation.asks.progress(params)
  if (method === 'notifications/cancelled') {
    const id = params.get('requestId')
    const reason = params.get('reason')?.asString()
    if (id) conversation.running.get(id)?.abort({ kind: 'cancelled', ...(reason !== undefined && { text: reason }) })
    return
  }
  house.dispatch({
    kind: 'notification',
    method,
    params,
    caller: conversation.caller,
    signal: new Abort(),
    sink: () => {},
  })
}

/** Reserves the place of an answer; the returned function runs the request. */
const announce = (conversation: ClientSession, message: Message, reply: Reply): ((house: FrontContext) => void) => {
  const call = new Abort()
  const index = reply.expect(call)
  const refuse = (error: RpcError, id: Json | undefined) => () => reply.respond(index, errorPieces(id, error))
  if (message.kind !== 'request') {
    const reason = message.kind === 'invalid' ? `Invalid Request: ${message.reason}` : undefined
    return refuse(rpcError('invalidRequest', reason), message.kind === 'invalid' ? message.id : undefined)
  }
  const { id, method, params } = message
  if (method === 'ping') return () => reply.respond(index, resultPieces(id, Json.empty))
  if (!isKnownTo(method, conversation.caller.revision))
    return refuse(rpcError('methodNotFound', `Method not found: ${method}`), id)
  const clash = conversation.running.add(id, params, call)
  if (clash) return refuse(clash, id)
  const excess = conversation.subscribed.reserve(method, params)
  if (excess) {
    conversation.running.delete(id)
    return refuse(excess, id)
  }
  return house => run(house, conversation, message, call, index, reply)
}

const run = (
  house: FrontContext,
  conversation: ClientSession,
  request: Request,
  call: Abort,
  index: number,
  reply: Reply,
): void => {
  const { id, method, params } = request
  const settle = (outcome: Outcome, ending: Ending) => {
    if (!conversation.running.delete(id)) return
    conversation.subscribed.settle(method, params, ending)
    house.active.delete(call)
    reply.respond(index, outcome)
  }
  const take = (frame: Frame): void | Promise<void> => {
    switch (frame.kind) {
      case 'notice':
        return reply.say(notificationPieces(frame.method, frame.params), mergeName(frame.method, frame.params))
      case 'question':
        if (reply.takesMore) return conversation.asks.ask(frame, pieces => reply.say(pieces))
        return frame.answer({
          kind: 'error',
          error: rpcError('methodNotFound', 'This client takes no requests during a call'),
        })
      case 'result':
        if (method === 'logging/setLevel') rememberLevel(conversation, params)
        return settle(resultPieces(id, frame.result), 'result')
      case 'failure':
        return settle(errorPieces(id, frame.error), 'failure')
    }
  }
  conversation.begin()
  house.active.add(call, false)
  call.onAbort(reason => settle(lastWord(id, reason), 'unknown'))
  try {
    house.dispatch({
      kind: 'request',
      method,
      params,
      caller: conversation.caller,
      signal: call,
      sink: frame => (conversation.running.get(id) === call ? take(frame) : undefined),
    })
  } catch (error) {
    house.log.error({ err: error }, 'a request failed inside the gateway')
    settle(errorPieces(id, rpcError('internal')), 'failure')
  }
}

/** What a client hears of a call that ended before its answer; nothing if it wanted that itself, or is long gone. */
export const lastWord = (id: Json, { kind }: AbortReason): Outcome => {
  const message = LAST_WORDS[kind]
  return message === undefined ? 'none' : errorPieces(id, rpcError('internal', message))
}

const LAST_WORDS: Readonly<Partial<Record<AbortReason['kind'], string>>> = {
  closing: 'The gateway is shutting down; send the request again',
  gone: 'The session ended before the answer came',
}

const rememberLevel = (conversation: ClientSession, params: Json): void => {
  const level = params.get('level')?.asString()
  if (isLevel(level)) conversation.setLevel(level)
}
