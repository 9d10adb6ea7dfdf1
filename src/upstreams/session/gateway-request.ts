import type { IncomingHttpHeaders } from 'node:http'
import type { Json } from '../../wire/json/json.ts'
import { joinBuffers, type Message, requestBody } from '../../wire/json-rpc.ts'
import { isEventStream } from '../../wire/media-type.ts'
import type { HttpLink } from '../http/http-link.ts'
import { type ResponseEnd, type ResponseHandler, ResponseReader } from '../http/response-reader.ts'

/** The outcome of a request of the gateway's own. */
export type Answered =
  | { readonly kind: 'response'; readonly headers: IncomingHttpHeaders; readonly result: Json }
  | { readonly kind: 'error'; readonly code: number; readonly message: string; readonly data: Json | undefined }
  | Exclude<ResponseEnd, { kind: 'closed' }>

/** What became of a message that has no answer. `unavailable`: not now; `failed`: there was no response. */
export type SendOutcome = 'taken' | 'refused' | 'unavailable' | 'failed'

/** An HTTP error in response to a message. */
export type SendRefusal = Extract<ResponseEnd, { kind: 'refused' }>

const TRY_LATER: ReadonlySet<number> = new Set([408, 425, 429])

/** Whether a server may take the same message later that it answers with this HTTP error now. */
export const isRetryable = (status: number): boolean => TRY_LATER.has(status) || status >= 500

const DRAIN_MS = 1000 // for a server to end its stream after the response, or one that it need not have opened

/** Sends a request of the gateway's own (probe, handshake, replay) and waits for its answer; never rejects. */
export const postRequest = (
  link: HttpLink,
  headers: readonly string[],
  method: string,
  params: Json,
  id: number,
): Promise<Answered> =>
  new Promise(resolve => {
    const { target, responseTimeouts, maxBytes } = link
    const body = requestBody(id, method, params)
    let drain: NodeJS.Timeout | undefined
    const settle = (answered: Answered): void => {
      resolve(answered)
      if (answered.kind === 'accepted') sending.abort()
      // Any other body has ended when it is read.
      if (reader.isStream && (answered.kind === 'response' || answered.kind === 'error'))
        drain ??= setTimeout(() => sending.abort(), DRAIN_MS).unref()
    }
    const reader = answerReader(id, settle, () => clearTimeout(drain))
    const sending = link.http.send(
      { method: 'POST', target, headers, body, responseTimeouts },
      new ResponseReader(reader, maxBytes),
    )
  })

/** Sends a message that has no answer (a notification, a response, the end of a session); a failure is only logged. */
export const sendMessage = (
  link: HttpLink,
  method: 'POST' | 'DELETE',
  headers: readonly string[],
  pieces: readonly Buffer[],
  what: string,
  done: (outcome: SendOutcome, refusal?: SendRefusal) => void = () => {},
): void => {
  let drain: NodeJS.Timeout | undefined
  let isTaken = false
  const reader: ResponseHandler = {
    started: (status, headers) => {
      isTaken = status < 300
      // Some servers open a stream in reply, and a stream need not end.
      if (!isTaken || !isEventStream(headers['content-type'])) return
      drain = setTimeout(() => sending.abort(), DRAIN_MS).unref()
      done('taken')
    },
    message: () => {},
    ended: end => {
      clearTimeout(drain)
      if (isTaken) return done('taken') // whatever its body is: some servers write "OK"
      if (end.kind === 'refused')
        link.log.debug({ what, status: end.status, text: end.text }, 'server refused a message')
      else if (end.kind === 'failed')
        link.log.debug({ what, reason: end.failure.text }, 'message did not reach the server')
      done(outcomeOf(end), end.kind === 'refused' ? end : undefined)
    },
  }
  const { target, responseTimeouts, maxBytes } = link
  const body = pieces.length > 0 ? joinBuffers(pieces) : null
  const sending = link.http.send(
    { method, target, headers, body, responseTimeouts },
    new ResponseReader(reader, maxBytes),
  )
}

const outcomeOf = (end: ResponseEnd): SendOutcome => {
  if (end.kind === 'failed') return 'failed'
  if (end.kind !== 'refused') return 'taken'
  return isRetryable(end.status) ? 'unavailable' : 'refused'
}

/** A response or an error as the outcome of a request. */
export const answeredBy = (message: Extract<Message, { kind: 'response' | 'error' }>): Answered =>
  message.kind === 'response'
    ? { kind: 'response', headers: {}, result: message.result }
    : { kind: 'error', code: message.error.code, message: message.error.message, data: message.error.data }

interface AnswerReader extends ResponseHandler {
  isStream: boolean
}

const answerReader = (id: number, settle: (answered: Answered) => void, over: () => void): AnswerReader => {
  let headers: IncomingHttpHeaders = {}
  const reader: AnswerReader = {
    isStream: false,
    started: (_, received) => {
      headers = received
      reader.isStream = isEventStream(received['content-type'])
    },
    // A server of 2024-11-05 that opens its channel for a POST too has taken it for a GET.
    event: ({ event }) => {
      if (event === 'endpoint') settle({ kind: 'accepted' })
      return event === 'endpoint'
    },
    message: message => {
      if (message.kind === 'response' && message.id.asNumber() === id)
        settle({ kind: 'response', headers, result: message.result })
      else if (message.kind === 'error' && isAbout(message, id)) settle(answeredBy(message))
    },
    ended: end => {
      over()
      settle(end.kind === 'closed' ? NO_RESPONSE : end)
    },
  }
  return reader
}

const NO_RESPONSE: Answered = {
  kind: 'failed',
  failure: { reason: 'upstream_protocol', text: 'answered without a response' },
  resume: undefined,
}

/** Our ids are numbers; an error with any other id, or none, is about the request that was posted. */
const isAbout = ({ id: given }: Extract<Message, { kind: 'error' }>, id: number): boolean =>
  given?.kind !== 'number' || given.asNumber() === id
