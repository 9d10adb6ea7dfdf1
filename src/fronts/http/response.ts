import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RpcError } from '../../protocol/errors.ts'
import { manners, type Revision } from '../../protocol/revisions.ts'
import type { Json } from '../../wire/json/json.ts'
import { errorPieces } from '../../wire/json-rpc.ts'
import { namesSse } from '../../wire/media-type.ts'
import { eventPieces } from '../../wire/sse.ts'
import type { EventLog, Reader } from '../streams/event-log.ts'
import type { FrontRequest } from './front-request.ts'

const JSON_TYPE = 'application/json'
const JOIN_BELOW = 4096 // one small write is cheaper than several; above half the buffer pool joining costs more

type Headers = Readonly<Record<string, string>>

/** What a browser or proxy must neither keep nor guess the type of. */
export const PRIVATE_HEADERS: Headers = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/** Sends a whole JSON body. */
export const sendJson = (
  response: ServerResponse,
  status: number,
  pieces: readonly Buffer[],
  headers?: Headers,
): void => {
  let length = 0
  for (const piece of pieces) length += piece.length
  response.writeHead(status, { 'content-type': JSON_TYPE, 'content-length': length, ...headers })
  if (length < JOIN_BELOW) {
    response.end(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, length))
    return
  }
  for (const piece of pieces) response.write(piece)
  response.end()
}

/** Whether a client takes JSON but, by the manners of its revision, waits for events. */
export const wantsEvents = ({ request, takesSse }: FrontRequest, revision: Revision): boolean =>
  takesSse && !manners(revision).plainAnswers && namesSse(request.headers.accept)

/** Sends whole answers as events of one short stream, without ids: there is nothing to come back for. */
export const sendEvents = (
  response: ServerResponse,
  bodies: readonly (readonly Buffer[])[],
  headers?: Headers,
): void => {
  response.writeHead(200, { ...SSE_HEADERS, ...headers })
  for (const body of bodies) for (const piece of eventPieces({ event: 'message', data: body })) response.write(piece)
  response.end()
}

/** Sends an error as the whole answer. */
export const sendError = (
  response: ServerResponse,
  status: number,
  id: Json | undefined,
  error: RpcError,
  headers?: Headers,
): void => {
  sendJson(response, status, errorPieces(id, error), { ...PRIVATE_HEADERS, ...headers })
}

/** Answers with a status alone. */
export const sendEmpty = (response: ServerResponse, status: number, headers?: Headers): void => {
  response.writeHead(status, { 'content-length': 0, ...headers })
  response.end()
}

/** What every event stream carries, so that nothing on the way buffers it. */
export const SSE_HEADERS: Headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
}

/** Turns a response into the reader of a log, from `sequence` on. A socket that takes nothing for `stallMs` is closed. */
export const streamTo = (
  response: ServerResponse,
  log: EventLog,
  options: { readonly stallMs: number; readonly headers?: Headers; readonly sequence?: number },
): void => {
  response.writeHead(200, { ...SSE_HEADERS, ...options.headers })
  let stall: NodeJS.Timeout | undefined
  const reader: Reader = {
    write: pieces => {
      let hasRoom = true
      response.cork()
      for (const piece of pieces) hasRoom = response.write(piece)
      response.uncork()
      if (!hasRoom && !stall) {
        stall = setTimeout(() => response.req.socket.destroy(), options.stallMs)
        stall.unref()
      }
      return hasRoom
    },
    end: () => void response.end(),
    destroy: () => void response.req.socket.destroy(), // its own may not have its turn yet
  }
  response.on('drain', () => {
    clearTimeout(stall)
    stall = undefined
    log.drained(reader)
  })
  response.on('close', () => {
    clearTimeout(stall)
    log.detach(reader)
  })
  response.flushHeaders()
  log.attach(reader, options.sequence)
}

const LINGER_MS = 2000

/** Destroys a socket that was answered for the last time: a peer may never close its side. */
export const destroySoon = (socket: Socket): void => {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS) // not at once: a reset would discard the answer
  timer.unref()
  socket.once('close', () => clearTimeout(timer))
}

/** Answers before the body has been read: the rest is thrown away, but not for ever. */
export const refuseUnread = (
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  error: RpcError,
  headers?: Headers,
): void => {
  sendError(response, status, undefined, error, headers)
  if (request.complete) return
  request.resume()
  const timer = setTimeout(() => request.socket.destroy(), LINGER_MS)
  timer.unref()
  request.on('close', () => clearTimeout(timer))
}
