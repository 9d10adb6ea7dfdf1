import type { RpcError } from '../../protocol/errors.ts'
import { META } from '../../protocol/meta.ts'
import type { RecordedMessage, Recording } from '../../protocol/recording.ts'
import { Json } from '../../wire/json/json.ts'
import { parseMessage, type RecordedCall, readError } from './recording-file.ts'

/** A call as a client sends it again: its request, what it answers, and what it expects. */
export interface ClientScript {
  readonly title: string
  readonly method: string
  readonly params: Json
  readonly answers: readonly ScriptedAnswer[]
  readonly unanswered: readonly ScriptedQuestion[] // the recording ends with them
  readonly expected: ExpectedEnd
  readonly recordedMs: number | undefined
}

/** The answer of the client to a question; an error: it refused. */
export type ScriptedAnswer =
  | { readonly method: string; readonly result: Json }
  | { readonly method: string; readonly error: RpcError }

/** A question that the client did not answer. */
export interface ScriptedQuestion {
  readonly method: string
  readonly message: string | undefined // of an elicitation
}

/** How the call ended when it was recorded. */
export type ExpectedEnd =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'error'; readonly error: RpcError }
  | { readonly kind: 'question' } // one of `unanswered`
  | { readonly kind: 'unknown' } // its last message was cut

/** A call that cannot be sent again, and why. */
export interface SkippedCall {
  readonly title: string
  readonly why: string
}

const NOT_SENT: ReadonlyMap<string, string> = new Map([
  ['initialize', 'the connection has a handshake of its own'],
  ['server/discover', 'the connection has a handshake of its own'],
  ['subscriptions/listen', 'it is a subscription, which has no end'],
])

const WITHOUT_END: Readonly<Record<string, string>> = {
  cancelled: 'its client cancelled it',
  running: 'it had not ended when it was exported',
}

/** The client's side of a recorded call. */
export const createClientScript = (call: RecordedCall): ClientScript | SkippedCall => {
  const [first] = call
  const title = [first.method, first.subject].filter(Boolean).join(' ')
  const unsent = NOT_SENT.get(first.method)
  if (unsent) return { title, why: unsent }
  const request = fromClient(first).find(({ kind }) => kind === 'request')
  if (!request) return { title, why: 'it is a notification' }
  if (first.continues !== undefined) return { title, why: 'it answers a request that is not in the file' }
  const message = parseMessage(request)
  if (!message) return { title, why: 'its request was too large to be recorded as a whole' }
  const last = call.at(-1) ?? first
  const unanswered = openQuestions(last)
  const expected = endOf(last) ?? (unanswered.length > 0 ? { kind: 'question' as const } : undefined)
  if (!expected) return { title, why: WITHOUT_END[last.outcome] ?? 'its end was not recorded' }
  return {
    title,
    method: first.method,
    params: ownParams(message.get('params') ?? Json.empty),
    answers: call.flatMap((recording, at) => [...liveAnswers(recording), ...retryAnswers(recording, call[at + 1])]),
    unanswered,
    expected,
    recordedMs: call.reduce((sum, { durationMs = 0 }) => sum + durationMs, 0),
  }
}

const fromClient = ({ all }: Recording): readonly RecordedMessage[] =>
  all.filter(({ side, direction }) => side === 'client' && direction === 'in')

const toClient = ({ all }: Recording): readonly RecordedMessage[] =>
  all.filter(({ side, direction }) => side === 'client' && direction === 'out')

const OF_CLIENT: ReadonlySet<string> = new Set([
  ...[META.protocolVersion, META.clientInfo, META.clientCapabilities, META.logLevel],
  ...['traceparent', 'tracestate'],
])

/** The params without what describes the client that was recorded: this one describes itself. */
const ownParams = (params: Json): Json => {
  const meta = params.get('_meta')
  const rest = params.without('inputResponses', 'requestState')
  if (!meta?.isObject) return rest
  const kept = meta.entries().filter(([name]) => !OF_CLIENT.has(name))
  return kept.length === 0 ? rest.without('_meta') : rest.with('_meta', Object.fromEntries(kept))
}

/** The answers of a client that was asked during the call, in the order of the questions. */
const liveAnswers = (recording: Recording): ScriptedAnswer[] => {
  const answers = fromClient(recording).filter(({ kind }) => kind === 'answer')
  return answers.flatMap((answer): ScriptedAnswer[] => {
    const message = parseMessage(answer)
    const method = answer.method ?? ''
    const [result, error] = [message?.get('result'), message?.get('error')]
    if (result) return [{ method, result }]
    return error ? [{ method, error: readError(error) }] : []
  })
}

/** The answers that the next request carries. */
const retryAnswers = (recording: Recording, retry: Recording | undefined): ScriptedAnswer[] => {
  const sent = retry && fromClient(retry).find(({ kind }) => kind === 'request')
  const responses = sent && parseMessage(sent)?.at('params', 'inputResponses')
  if (!responses) return []
  return inputRequests(recording).flatMap(([key, request]) => {
    const result = responses.get(key)
    return result ? [{ method: request.get('method')?.asString() ?? '', result }] : []
  })
}

/** The questions of an `input_required` result. */
const inputRequests = (recording: Recording): [string, Json][] => {
  const result = toClient(recording).find(({ kind }) => kind === 'result')
  return (result && parseMessage(result)?.at('result', 'inputRequests'))?.entries() ?? []
}

/** The questions of the last exchange that nothing answers. */
const openQuestions = (recording: Recording): readonly ScriptedQuestion[] => {
  const answered = new Set(fromClient(recording).flatMap(each => (each.kind === 'answer' ? idOf(each) : [])))
  const asked = toClient(recording).filter(each => each.kind === 'question' && !answered.has(idOf(each)))
  const live = asked.flatMap(each => parseMessage(each) ?? [])
  return [...live, ...inputRequests(recording).map(([, request]) => request)].map(request => ({
    method: request.get('method')?.asString() ?? '',
    message: request.at('params', 'message')?.asString(),
  }))
}

const idOf = (message: RecordedMessage): string => String(parseMessage(message)?.get('id') ?? '')

/** Undefined if the call has no end: it was cancelled, or it ends with questions. */
const endOf = (recording: Recording): ExpectedEnd | undefined => {
  const last = toClient(recording).findLast(({ kind }) => kind === 'result' || kind === 'error')
  if (!last) return undefined
  const message = parseMessage(last)
  const [result, error] = [message?.get('result'), message?.get('error')]
  if (error) return { kind: 'error', error: readError(error) }
  if (!result) return { kind: 'unknown' }
  return inputRequests(recording).length > 0 ? undefined : { kind: 'result', result: result.toValue() }
}
