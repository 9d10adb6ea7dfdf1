import { META } from '../../protocol/meta.ts'
import type { RecordedMessage, Recording } from '../../protocol/recording.ts'
import { Json } from '../../wire/json/json.ts'
import { parseMessage, type RecordedCall } from './recording-file.ts'

/** A call as a client sends it again: its request, what it answers, and what it expects. */
export interface ClientScript {
  readonly title: string
  readonly method: string
  readonly params: Json
  readonly answers: readonly ScriptedAnswer[]
  readonly expected: ExpectedEnd
  readonly recordedMs: number | undefined
}

/** The answer of the client to a question. */
export interface ScriptedAnswer {
  readonly method: string
  readonly result: Json
}

/** How the call ended when it was recorded; `unknown`: the last message was cut, or never came. */
export type ExpectedEnd =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'error'; readonly code: number | undefined; readonly message: string | undefined }
  | { readonly kind: 'unknown' }

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
  return {
    title,
    method: first.method,
    params: ownParams(message.get('params') ?? Json.empty),
    answers: call.flatMap((recording, at) => [...liveAnswers(recording), ...retryAnswers(recording, call[at + 1])]),
    expected: endOf(last),
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
  return answers.flatMap(answer => {
    const result = parseMessage(answer)?.get('result')
    return result ? [{ method: answer.method ?? '', result }] : []
  })
}

/** The answers that the next request carries. */
const retryAnswers = (recording: Recording, retry: Recording | undefined): ScriptedAnswer[] => {
  const asked = toClient(recording).find(({ kind }) => kind === 'result')
  const requests = asked && parseMessage(asked)?.at('result', 'inputRequests')
  const sent = retry && fromClient(retry).find(({ kind }) => kind === 'request')
  const responses = sent && parseMessage(sent)?.at('params', 'inputResponses')
  if (!requests || !responses) return []
  return requests.entries().flatMap(([key, request]) => {
    const result = responses.get(key)
    return result ? [{ method: request.get('method')?.asString() ?? '', result }] : []
  })
}

const endOf = (recording: Recording): ExpectedEnd => {
  const last = toClient(recording).findLast(({ kind }) => kind === 'result' || kind === 'error')
  const message = last && parseMessage(last)
  const result = message?.get('result')
  if (result) return { kind: 'result', result: result.toValue() }
  const error = message?.get('error')
  if (!error) return { kind: 'unknown' }
  return { kind: 'error', code: error.get('code')?.asNumber(), message: error.get('message')?.asString() }
}
