import type { IncomingHttpHeaders } from 'node:http'
import type { Json } from '../../wire/json/json.ts'
import { join, type Message, requestPieces } from '../../wire/json-rpc.ts'
import type { HttpLink } from '../http/http-link.ts'
import { type ResponseEnd, type ResponseHandler, ResponseReader } from '../http/response-reader.ts'

/** What came back for a request of our own. */
export type Answered =
  | { readonly kind: 'response'; readonly status: number; readonly headers: IncomingHttpHeaders; readonly result: Json }
  | { readonly kind: 'error'; readonly code: number; readonly message: string; readonly data: Json | undefined }
  | Exclude<ResponseEnd, { kind: 'closed' }>

const DRAIN_MS = 1000 // for a server to end its stream after the response

/** Sends one request of the gateway's own (probe, handshake) and waits for its answer; never rejects. */
export const ask = (
  link: HttpLink,
  headers: readonly string[],
  method: string,
  params: Json,
  id: number,
): Promise<Answered> =>
  new Promise(resolve => {
    const request = {
      method: 'POST' as const,
      target: link.target,
      headers,
      body: join(requestPieces(id, method, params)),
      responseTimeouts: link.responseTimeouts,
    }
    let drain: NodeJS.Timeout | undefined
    const settle = (answered: Answered): void => {
      resolve(answered)
      if (answered.kind === 'accepted') sending.abort()
      if (answered.kind === 'response' || answered.kind === 'error')
        drain ??= setTimeout(() => sending.abort(), DRAIN_MS).unref()
    }
    const sending = link.http.send(
      request,
      new ResponseReader(
        answerReader(id, settle, () => clearTimeout(drain)),
        link.maxBytes,
      ),
    )
  })

const answerReader = (id: number, resolve: (answered: Answered) => void, over: () => void): ResponseHandler => {
  let status = 0
  let headers: IncomingHttpHeaders = {}
  return {
    started: (code, all) => {
      status = code
      headers = all
    },
    // A server of 2024-11-05 that opens its channel for a POST too has taken it for a GET.
    event: ({ event }) => {
      if (event === 'endpoint') resolve({ kind: 'accepted' })
      return event === 'endpoint'
    },
    message: message => {
      if (message.kind === 'response' && message.id.asNumber() === id)
        resolve({ kind: 'response', status, headers, result: message.result })
      else if (message.kind === 'error' && isFor(message, id)) resolve(errorOf(message))
    },
    ended: end => {
      over()
      resolve(end.kind === 'closed' ? NO_ANSWER : end)
    },
  }
}

const NO_ANSWER: Answered = {
  kind: 'failed',
  failure: { reason: 'upstream_protocol', text: 'answered without a response' },
  resume: undefined,
}

/** Our ids are numbers; an error with any other, or none, is about the request that was posted. */
const isFor = ({ id: given }: Extract<Message, { kind: 'error' }>, id: number): boolean =>
  given?.kind !== 'number' || given.asNumber() === id

const errorOf = ({ error }: Extract<Message, { kind: 'error' }>): Answered => ({
  kind: 'error',
  code: error.code,
  message: error.message,
  data: error.data,
})
