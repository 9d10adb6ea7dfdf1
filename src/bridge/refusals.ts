import { usesTools } from '../eras/sampling.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import type { Answer, Exchange, Question, Sink } from '../protocol/exchange.ts'
import type { Json } from '../wire/json/json.ts'
import { Json as Value } from '../wire/json/json.ts'

/** Why a client that declared these capabilities cannot be asked this; undefined if it can. */
export const refusalOf = (capabilities: Json, method: string, params: Json): RpcError | undefined =>
  KINDS.has(method) ? undeclared(capabilities, method, params) : notTaken(method)

/** The same, but what the specification does not name is an extension's own affair and passes. */
export const undeclared = (capabilities: Json, method: string, params: Json): RpcError | undefined => {
  const kind = KINDS.get(method)
  if (kind === undefined) return undefined
  const declared = capabilities.get(kind)
  if (!declared) return notTaken(method)
  if (method === 'elicitation/create') return modeRefusal(declared, params.get('mode')?.asString() ?? 'form')
  if (method === 'sampling/createMessage' && usesTools(params) && !declared.has('tools'))
    return rpcError('invalidParams', 'The client does not take tools in sampling')
  return undefined
}

const notTaken = (method: string): RpcError => rpcError('methodNotFound', `The client does not take ${method}`)

const KINDS: ReadonlyMap<string, string> = new Map([
  ['elicitation/create', 'elicitation'],
  ['sampling/createMessage', 'sampling'],
  ['roots/list', 'roots'],
])

/** A bare `elicitation: {}` means forms. */
const modeRefusal = (declared: Json, mode: string): RpcError | undefined => {
  const isBare = !declared.has('form') && !declared.has('url')
  if (declared.has(mode) || (mode === 'form' && isBare)) return undefined
  return rpcError('invalidParams', `The client does not take elicitation in mode ${mode}`)
}

/** A result that fits the question it answers; anything else is asked again. */
export const isFitting = (method: string, answer: Json | undefined): answer is Json => {
  if (!answer?.isObject) return false
  if (method === 'elicitation/create') {
    const action = answer.get('action')?.asString()
    if (action === 'accept') return answer.get('content') === undefined || answer.get('content')?.isObject === true
    return action === 'decline' || action === 'cancel'
  }
  if (method === 'roots/list') return answer.get('roots')?.kind === 'array'
  return answer.has('role') && answer.has('content')
}

/** Whether a question is about the session, so that it outlives the call it was asked on even if that is cancelled. */
export const isAboutSession = (method: string): boolean => method === 'roots/list'

/** What an asker hears when nobody will answer any more. */
export const abandoned = (method: string): Answer =>
  method === 'elicitation/create'
    ? { kind: 'result', result: Value.of({ action: 'cancel' }) }
    : { kind: 'error', error: rpcError('internal', 'The request was cancelled') }

/** The answer to a question that no client was shown. */
export const UNSEEN: Answer = {
  kind: 'error',
  error: rpcError('internal', 'The request this belonged to ended before the client could be asked'),
}

/** The sink of an exchange that can carry no questions: askers are told so. */
export const refuseUndeclared =
  (exchange: Exchange): Sink =>
  frame =>
    frame.kind === 'question' ? refuse(frame) : exchange.sink(frame)

const refuse = (question: Question): void =>
  question.answer({
    kind: 'error',
    error: rpcError(
      'methodNotFound',
      `${question.method} cannot be asked outside a tool call, prompt or resource read`,
    ),
  })
