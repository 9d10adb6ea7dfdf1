import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeError, type Incoming, readIncoming } from '../../wire/json-rpc.ts'
import { encodeEvent } from '../../wire/sse.ts'
import type { FrontRequest } from '../http/front-request.ts'
import { RETRY_SOON, requestIdOf } from '../http/read-request.ts'
import { sendError, sendEvents, sendJson } from '../http/response.ts'
import { isMessagePath } from './addressee.ts'

const LOST = rpcError(
  'internal',
  'The replica that served this request was lost before it answered. It may have been executed: check before you send it again',
  Json.of({ reason: 'replica_lost' }),
)
const UNREACHABLE = rpcError(
  'internal',
  'The replica that holds this session cannot be reached at the moment; send the request again',
  Json.of({ reason: 'replica_unreachable' }),
)
const BAD_GATEWAY = 502

/** Responds to a request that may have been executed by a replica that is gone: an error for each id in its body. */
export const sendLost = (request: FrontRequest, body: Buffer | undefined): void => {
  const { response, acceptsJson, raw } = request
  const errors = lostResponses(body)
  const [first] = errors
  if (!first || isMessagePath(raw)) return sendError(response, BAD_GATEWAY, undefined, LOST)
  if (!acceptsJson) return sendEvents(response, errors)
  if (errors.length === 1 && !isBatch(body)) return sendJson(response, 200, first)
  const pieces = errors.flatMap((error, at) => [Buffer.from(at === 0 ? '[' : ','), ...error])
  sendJson(response, 200, [...pieces, Buffer.from(']')])
}

/** The events that end the response to a request whose replica was lost. */
export const lostEvents = (body: Buffer | undefined): Buffer[] => [
  Buffer.from('\n\n'), // ends what was cut off
  ...lostResponses(body).flatMap(data => encodeEvent({ event: 'message', data })),
]

/** Responds to a request that was not served and can be sent again: by default, its home has a lease and cannot be reached. */
export const sendUnreachable = (
  { response }: FrontRequest,
  body: Buffer | undefined,
  error: RpcError = UNREACHABLE,
): void => sendError(response, 503, requestIdOf(readSafely(body)), error, RETRY_SOON)

const isBatch = (body: Buffer | undefined): boolean => readSafely(body)?.kind === 'batch'

const lostResponses = (body: Buffer | undefined): Buffer[][] => {
  const incoming = readSafely(body)
  const messages = incoming?.kind === 'batch' ? incoming.messages : incoming ? [incoming] : []
  return messages.flatMap(message => (message.kind === 'request' ? [encodeError(message.id, LOST)] : []))
}

const readSafely = (body: Buffer | undefined): Incoming | undefined => {
  try {
    return body && readIncoming(body)
  } catch {
    return undefined
  }
}
