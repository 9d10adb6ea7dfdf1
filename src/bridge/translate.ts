import {
  convertAnswer,
  convertError,
  convertNotice,
  convertParams,
  convertQuestion,
  convertResult,
} from '../eras/convert.ts'
import { rpcError } from '../protocol/errors.ts'
import type { Answer, Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { isLevel, LEVELS } from '../protocol/methods.ts'
import { isModern, type Revision } from '../protocol/revisions.ts'
import { Json } from '../wire/json.ts'
import type { Subscriptions } from './subscriptions.ts'

/** What a legacy session says that a modern server has no word for. */
type Local = (exchange: Exchange, dispatch: Dispatch, subscriptions: Subscriptions) => void

const LEGACY_ONLY: Readonly<Record<string, Local>> = {
  'logging/setLevel': acceptLevel, // the front puts the session's level on every later call
  'resources/subscribe': (exchange, dispatch, subscriptions) => subscriptions.watch(exchange, dispatch),
  'resources/unsubscribe': (exchange, dispatch, subscriptions) => subscriptions.unwatch(exchange, dispatch),
  'subscriptions/listen': (exchange, dispatch, subscriptions) => subscriptions.begin(exchange, dispatch),
  'notifications/roots/list_changed': () => {}, // modern servers ask when they need roots
}

/** Lets a caller of one revision talk to a server of another: params down, frames back. */
export const translate = (to: Revision, dispatch: Dispatch, subscriptions: Subscriptions): Dispatch => {
  const across: Dispatch = exchange => dispatch(converted(exchange, to))
  if (!isModern(to)) return across
  return exchange => {
    const local = isModern(exchange.caller.revision) ? undefined : legacyOnly(exchange.method)
    if (local) local(exchange, across, subscriptions)
    else across(exchange)
  }
}

const legacyOnly = (method: string): Local | undefined =>
  Object.hasOwn(LEGACY_ONLY, method) ? LEGACY_ONLY[method] : undefined

const converted = (exchange: Exchange, to: Revision): Exchange => {
  const from = exchange.caller.revision
  return {
    ...exchange,
    params: convertParams(exchange.method, exchange.params, from, to),
    sink: frame => exchange.sink(convertFrame(exchange, frame, to)),
  }
}

const convertFrame = (exchange: Exchange, frame: Frame, peer: Revision): Frame => {
  const caller = exchange.caller.revision
  switch (frame.kind) {
    case 'result':
      return { kind: 'result', result: convertResult(exchange.method, frame.result, peer, caller) }
    case 'failure':
      return { kind: 'failure', error: convertError(exchange.method, frame.error, exchange.params, peer, caller) }
    case 'notice':
      return { ...frame, params: convertNotice(frame.method, frame.params, peer, caller) }
    case 'question':
      return {
        ...frame,
        params: convertQuestion(frame.method, frame.params, peer, caller),
        answer: reply => frame.answer(convertReply(frame.method, reply, caller, peer)),
      }
  }
}

const convertReply = (method: string, reply: Answer, from: Revision, to: Revision): Answer =>
  reply.kind === 'result' ? { kind: 'result', result: convertAnswer(method, reply.result, from, to) } : reply

function acceptLevel(exchange: Exchange): void {
  const level = exchange.params.get('level')?.asString()
  if (isLevel(level)) exchange.sink({ kind: 'result', result: Json.empty })
  else
    exchange.sink({
      kind: 'failure',
      error: rpcError('invalidParams', `Unknown log level ${JSON.stringify(level)}; use one of ${LEVELS.join(', ')}`),
    })
}
