import { usesTools } from '../eras/sampling.ts'
import { deliver } from '../protocol/deliver.ts'
import { ERRORS, type RpcError, rpcError } from '../protocol/errors.ts'
import type { Answer, Exchange, Sink } from '../protocol/exchange.ts'
import { Json, type PlainObject } from '../wire/json/json.ts'

const CAPABILITIES: ReadonlyMap<string, string> = new Map([
  ['elicitation/create', 'elicitation'],
  ['sampling/createMessage', 'sampling'],
  ['roots/list', 'roots'],
])

/** Why a client with these capabilities cannot be asked a question; undefined if it can. */
export const questionRefusal = (capabilities: Json, method: string, params: Json): RpcError | undefined =>
  CAPABILITIES.has(method) ? capabilityRefusal(capabilities, method, params) : notSupported(method)

/** The same, but a question that the specification does not name belongs to an extension and passes. */
export const capabilityRefusal = (capabilities: Json, method: string, params: Json): RpcError | undefined => {
  const capability = CAPABILITIES.get(method)
  if (capability === undefined) return undefined
  const declared = capabilities.get(capability)
  if (!declared) return notSupported(method)
  if (method === 'elicitation/create') return modeRefusal(declared, params.get('mode')?.asString() ?? 'form')
  if (method === 'sampling/createMessage' && usesTools(params) && !declared.has('tools'))
    return rpcError('invalidParams', 'The client does not support tools in sampling')
  return undefined
}

const notSupported = (method: string): RpcError => rpcError('methodNotFound', `The client does not support ${method}`)

/** A bare `elicitation: {}` means forms. */
const modeRefusal = (declared: Json, mode: string): RpcError | undefined => {
  const isBare = !declared.has('form') && !declared.has('url')
  if (declared.has(mode) || (mode === 'form' && isBare)) return undefined
  return rpcError('invalidParams', `The client does not support elicitation in mode ${mode}`)
}

/** Whether an answer has the shape that its question requires; otherwise the client is asked again. */
export const isValidAnswer = (method: string, answer: Json | undefined): answer is Json => {
  if (!answer?.isObject) return false
  if (method === 'elicitation/create') {
    const action = answer.get('action')?.asString()
    if (action === 'accept') return answer.get('content') === undefined || answer.get('content')?.isObject === true
    return action === 'decline' || action === 'cancel'
  }
  if (method === 'roots/list') return answer.get('roots')?.kind === 'array'
  return answer.has('role') && answer.has('content')
}

/** Whether a question is about the session: it outlives the call it was asked on, even if that is cancelled. */
export const isAboutSession = (method: string): boolean => method === 'roots/list'

/** The answer for the server if the client will not answer any more. */
export const abandoned = (method: string): Answer =>
  method === 'elicitation/create'
    ? { kind: 'result', result: Json.of({ action: 'cancel' }) }
    : { kind: 'error', error: rpcError('internal', 'The request was cancelled') }

/** The answer to a question that no client has seen. */
export const NOT_ASKED: Answer = {
  kind: 'error',
  error: rpcError('internal', 'The request this belonged to ended before the client could be asked'),
}

/** The sink of an exchange that cannot carry questions: the server gets an error for each. */
export const withoutQuestions =
  (exchange: Exchange): Sink =>
  frame => {
    if (frame.kind !== 'question') return exchange.sink(frame)
    const message = `${frame.method} cannot be asked outside a tool call, prompt or resource read`
    frame.answer({ kind: 'error', error: rpcError('methodNotFound', message) })
  }

/** Ends a call that needs an answer it cannot get: a tool call with text that the model reads, others with an error. */
export const failCall = ({ method, sink }: Exchange, message: string, base: PlainObject = {}): void =>
  void deliver(
    sink,
    method === 'tools/call'
      ? { kind: 'result', result: Json.of({ ...base, isError: true, content: [{ type: 'text', text: message }] }) }
      : { kind: 'failure', error: rpcError('internal', message) },
  )

/** With these a client says that it has not shown the question to its user. */
const NOT_SHOWN: ReadonlySet<number> = new Set([ERRORS.methodNotFound.code, ERRORS.invalidParams.code])

/** The modern form has no errors: a `cancel`, if a user may have seen the question. */
export const resultOfError = (method: string, { code }: RpcError): Json | undefined =>
  method === 'elicitation/create' && !NOT_SHOWN.has(code) ? Json.of({ action: 'cancel' }) : undefined
