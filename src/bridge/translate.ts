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
import type { Answer, Caller, Dispatch, Exchange, Frame, Question } from '../protocol/exchange.ts'
import { isLogSeverity, LOG_SEVERITIES } from '../protocol/methods.ts'
import { NOTIFICATIONS } from '../protocol/notifications.ts'
import { isModern, type Revision } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { capabilityRefusal } from './client-questions.ts'
import type { LegacySubscriptions } from './subscriptions.ts'

const MAX_ATTEMPTS = 3 // at one question, if the answers are invalid

/** Handles a message of a legacy session that a modern server does not know. */
type LocalHandler = (exchange: Exchange, dispatch: Dispatch, subscriptions: LegacySubscriptions) => void

const LEGACY_ONLY: ReadonlyMap<string, LocalHandler> = new Map<string, LocalHandler>([
  ['logging/setLevel', exchange => acceptLevel(exchange)], // the front puts the session's level on every later call
  ['resources/subscribe', (exchange, _, subscriptions) => subscriptions.subscribe(exchange)],
  ['resources/unsubscribe', (exchange, _, subscriptions) => subscriptions.unsubscribe(exchange)],
  ['subscriptions/listen', (exchange, dispatch, subscriptions) => subscriptions.listen(exchange, dispatch)],
  [NOTIFICATIONS.rootsChanged, () => {}], // modern servers ask when they need roots
])

/** Called with each result of `server/discover`: as the server sent it, and in the caller's revision. */
type OnDiscovered = (caller: Caller, native: Json, result: Json) => void

/** Converts between the revisions of a caller and a server: the params of a request, and the frames of its response. */
export const translate = (
  to: Revision,
  dispatch: Dispatch,
  subscriptions: LegacySubscriptions,
  onDiscovered?: OnDiscovered,
): Dispatch => {
  const forward: Dispatch = exchange => dispatch(convert(exchange, to, onDiscovered))
  if (!isModern(to)) return forward
  return exchange => {
    const local = isModern(exchange.caller.revision) ? undefined : LEGACY_ONLY.get(exchange.method)
    if (local) local(exchange, forward, subscriptions)
    else forward(exchange)
  }
}

const convert = (exchange: Exchange, to: Revision, onDiscovered: OnDiscovered | undefined): Exchange => {
  const from = exchange.caller.revision
  return {
    ...exchange,
    params: convertParams(exchange.method, exchange.params, from, to),
    sink: frame =>
      frame.kind === 'question'
        ? ask(exchange, frame, to)
        : exchange.sink(convertFrame(exchange, frame, to, onDiscovered)),
  }
}

const convertFrame = (
  exchange: Exchange,
  frame: Exclude<Frame, Question>,
  peer: Revision,
  onDiscovered: OnDiscovered | undefined,
): Frame => {
  const caller = exchange.caller.revision
  switch (frame.kind) {
    case 'result': {
      const result = convertResult(exchange.method, frame.result, peer, caller)
      if (exchange.method === 'server/discover') onDiscovered?.(exchange.caller, frame.result, result)
      return { kind: 'result', result }
    }
    case 'failure': {
      const { method, params } = exchange
      const ending = convertError(method, frame.error, params, peer, caller, exchange.caller.capabilities)
      return 'code' in ending ? { kind: 'failure', error: ending } : { kind: 'result', result: ending.result }
    }
    case 'notice':
      return { ...frame, params: convertNotice(frame.method, frame.params, peer, caller) }
  }
}

/** Asks in the caller's revision. If its answer breaks a rule that this revision cannot express, it is asked again. */
const ask = (exchange: Exchange, question: Question, peer: Revision, attempt = 1, fault = ''): void | Promise<void> => {
  const { method } = question
  const { revision: caller, capabilities } = exchange.caller
  const refusal = capabilityRefusal(capabilities, method, question.params)
  if (refusal) return question.answer({ kind: 'error', error: refusal })
  const params = convertQuestion(method, question.params, peer, caller)
  if ('rejection' in params) return question.answer({ kind: 'error', error: params.rejection })
  const answer = (reply: Answer): void => {
    if (reply.kind !== 'result') return question.answer(reply)
    const result = convertAnswer(method, reply.result, question.params, caller, peer)
    if (!('problem' in result)) return question.answer({ kind: 'result', result })
    if (attempt < MAX_ATTEMPTS && !question.withdrawn.reason)
      return void ask(exchange, question, peer, attempt + 1, result.problem)
    question.answer({ kind: 'result', result: Json.of({ action: 'cancel' }) })
  }
  const text = params.get('message')?.asString() ?? ''
  return exchange.sink({ ...question, params: fault ? params.with('message', `${fault}\n\n${text}`) : params, answer })
}

const acceptLevel = ({ params, sink }: Exchange): void => {
  const level = params.get('level')?.asString()
  const message = `Unknown log level ${JSON.stringify(level)}; use one of ${LOG_SEVERITIES.join(', ')}`
  void deliver(
    sink,
    isLogSeverity(level)
      ? { kind: 'result', result: Json.empty }
      : { kind: 'failure', error: rpcError('invalidParams', message) },
  )
}
