import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { RpcError } from '../../protocol/errors.ts'
import { type Revision, transportRulesOf } from '../../protocol/revisions.ts'
import type { Json } from '../../wire/json/json.ts'
import { type ByteText, encodeError } from '../../wire/json-rpc.ts'
import { asksForSse } from '../../wire/media-type.ts'
import { encodeEvent } from '../../wire/sse.ts'
import type { EventLog, StreamReader } from '../streams/event-log.ts'
import { writeCorked } from '../streams/outbox.ts'
import type { FrontRequest } from './front-request.ts'

const JOIN_BELOW = 4096 // bytes: one small write is cheaper than several; above half the buffer pool joining costs more
const LINGER_MS = 2000

type Headers = Readonly<Record<string, string>>

/** Response headers that keep browsers and proxies from storing a response or guessing its type. */
export const PRIVATE_HEADERS: Headers = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/** Headers of every event stream; they keep proxies from buffering it. */
export const SSE_HEADERS: Headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
}

/** Sends a whole JSON body. */
export const sendJson = (
  response: ServerResponse,
  status: number,
  body: readonly Buffer[] | ByteText,
  headers?: Headers,
): void => {
  const length = typeof body === 'string' ? body.length : lengthOf(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': length, ...headers })
  if (typeof body === 'string' || length < JOIN_BELOW) {
    response.write(typeof body === 'string' ? body : textOf(body), 'latin1')
    process.nextTick(endResponse, response)
    return
  }
  for (const piece of body) response.write(piece)
  response.end()
}

const lengthOf = (pieces: readonly Buffer[]): number => pieces.reduce((sum, { length }) => sum + length, 0)

const textOf = (pieces: readonly Buffer[]): ByteText => {
  let text = ''
  for (const piece of pieces) text += piece.toString('latin1')
  return text
}

/**
 * Node joins the head with a first write of text, and writes it in the next tick. An end before that would add an empty
 * write, and make them two buffers of a `writev`, which costs a tenth of serving a small response.
 */
const endResponse = (response: ServerResponse): void => void response.end()

/** Sends an error as the whole response. */
export const sendError = (
  response: ServerResponse,
  status: number,
  id: Json | undefined,
  error: RpcError,
  headers?: Headers,
): void => {
  sendJson(response, status, encodeError(id, error), { ...PRIVATE_HEADERS, ...headers })
}

/** Sends a status without a body. */
export const sendEmpty = (response: ServerResponse, status: number, headers?: Headers): void => {
  response.writeHead(status, { 'content-length': 0, ...headers })
  response.end()
}

/** True if a client accepts JSON but, by the rules of its revision, expects events. */
export const expectsEvents = ({ raw, acceptsSse }: FrontRequest, revision: Revision): boolean =>
  acceptsSse && !transportRulesOf(revision).plainAnswers && asksForSse(raw.headers.accept)

/** Sends whole JSON-RPC responses as events of one short stream, without ids: it cannot be resumed. */
export const sendEvents = (
  response: ServerResponse,
  bodies: readonly (readonly Buffer[])[],
  headers?: Headers,
): void => {
  response.writeHead(200, { ...SSE_HEADERS, ...headers })
  for (const body of bodies) for (const piece of encodeEvent({ event: 'message', data: body })) response.write(piece)
  response.end()
}

/** A response that has begun as an event stream. */
export interface EventStream {
  /** Takes its events from a log, from `sequence` on. */
  attach(log: EventLog, sequence?: number): void
  /** Writes an event and waits for room; false if the client has disconnected. */
  write(pieces: readonly Buffer[]): Promise<boolean>
  end(): void
}

/** Begins an event stream. A socket that takes nothing for `stallMs` is destroyed. */
export const openEventStream = (response: ServerResponse, stallMs: number, headers?: Headers): EventStream => {
  let log: EventLog | undefined
  let stall: NodeJS.Timeout | undefined
  let onRoom: (() => void) | undefined
  const destroy = (): void => void response.req.socket.destroy() // `response.socket` is unset while responses before it are pending
  const reader: StreamReader = {
    write: pieces => {
      const hasRoom = writeCorked(response, pieces)
      if (!hasRoom) stall ??= setTimeout(destroy, stallMs).unref()
      return hasRoom
    },
    end: () => void response.end(),
    destroy,
  }
  response.on('drain', () => {
    clearTimeout(stall)
    stall = undefined
    onRoom?.()
    log?.drained(reader)
  })
  response.on('close', () => {
    clearTimeout(stall)
    onRoom?.()
    log?.detach(reader)
  })
  response.writeHead(200, { ...SSE_HEADERS, ...headers })
  response.flushHeaders()
  return {
    attach: (next, sequence) => {
      log = next
      next.attach(reader, sequence)
    },
    write: async pieces => {
      if (!response.destroyed && !reader.write(pieces))
        await new Promise<void>(resolve => {
          onRoom = resolve
        })
      return !response.destroyed
    },
    end: reader.end,
  }
}

/** Attaches a response to a log, from `sequence` on; headers and waiting events leave in one write. */
export const streamTo = (
  response: ServerResponse,
  log: EventLog,
  stallMs: number,
  sequence?: number,
  headers?: Headers,
): void => {
  response.cork()
  openEventStream(response, stallMs, headers).attach(log, sequence)
  response.uncork()
}

/** Destroys a socket after its last response: the peer may never close its side. */
export const destroySoon = (socket: Socket): void => {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref() // at once, a reset would discard the response
  socket.once('close', () => clearTimeout(timer))
}

/** Sends an error before the body is read; the rest of the body is discarded for a limited time. */
export const rejectUnread = (
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  error: RpcError,
  headers?: Headers,
): void => {
  sendError(response, status, undefined, error, headers)
  discardBody(request)
}

/** Reads the rest of a body that is not needed, for a limited time. */
export const discardBody = (request: IncomingMessage): void => {
  if (request.complete) return
  request.resume()
  const { socket } = request // a destroyed request has none later
  const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
  request.on('close', () => clearTimeout(timer))
}
