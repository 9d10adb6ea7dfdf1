import {
  convertAnswer,
  convertError,
  convertNotice,
  convertParams,
  convertQuestion,
  convertResult,
} from '../eras/convert.ts'
import { deliver } from '../protocol/deliver.ts'
import { rpcError } from '../protocol/errors.ts'
import type { Answer, Dispatch, Exchange, Frame, Question } from '../protocol/exchange.ts'
import { isLogSeverity, LOG_SEVERITIES } from '../protocol/methods.ts'
import { isModern, type Revision } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { undeclared } from './refusals.ts'
import type { Subscriptions } from './subscriptions.ts'

const MOST_ASKED = 3 // times one question, if the answers do not fit

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
    sink: frame =>
      frame.kind === 'question' ? ask(exchange, frame, to) : exchange.sink(convertFrame(exchange, frame, to)),
  }
}

const convertFrame = (exchange: Exchange, frame: Exclude<Frame, Question>, peer: Revision): Frame => {
  const caller = exchange.caller.revision
  switch (frame.kind) {
    case 'result':
      return { kind: 'result', result: convertResult(exchange.method, frame.result, peer, caller) }
    case 'failure': {
      const { method, params } = exchange
      const ending = convertError(method, frame.error, params, peer, caller, exchange.caller.capabilities)
      return 'code' in ending ? { kind: 'failure', error: ending } : { kind: 'result', result: ending.result }
    }
    case 'notice':
      return { ...frame, params: convertNotice(frame.method, frame.params, peer, caller) }
  }
}

/** Asks in the caller's words; an answer that breaks a rule those words could not state is asked for again. */
const ask = (exchange: Exchange, question: Question, peer: Revision, asked = 1, unfit = ''): void | Promise<void> => {
  const { method } = question
  const { revision: caller, capabilities } = exchange.caller
  const refusal = undeclared(capabilities, method, question.params)
  if (refusal) return question.answer({ kind: 'error', error: refusal })
  const params = convertQuestion(method, question.params, peer, caller)
  if ('rejection' in params) return question.answer({ kind: 'error', error: params.rejection })
  const answer = (reply: Answer): void => {
    if (reply.kind !== 'result') return question.answer(reply)
    const result = convertAnswer(method, reply.result, question.params, caller, peer)
    if (!('problem' in result)) return question.answer({ kind: 'result', result })
    if (asked < MOST_ASKED && !question.withdrawn.reason)
      return void ask(exchange, question, peer, asked + 1, result.problem)
    question.answer({ kind: 'result', result: Json.of({ action: 'cancel' }) })
  }
  const text = params.get('message')?.asString() ?? ''
  return exchange.sink({ ...question, params: unfit ? params.with('message', `${unfit}\n\n${text}`) : params, answer })
}

function acceptLevel(exchange: Exchange): void {
  const level = exchange.params.get('level')?.asString()
  if (isLogSeverity(level)) void deliver(exchange.sink, { kind: 'result', result: Json.empty })
  else
    void deliver(exchange.sink, {
      kind: 'failure',
      error: rpcError(
        'invalidParams',
        `Unknown log level ${JSON.stringify(level)}; use one of ${LOG_SEVERITIES.join(', ')}`,
      ),
    })
}
