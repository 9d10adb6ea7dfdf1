import { Abort } from '../../protocol/cancellation.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { encodeError, type Incoming, type Message } from '../../wire/json-rpc.ts'
import { channelInQuery } from '../cluster/addressee.ts'
import { NO_SESSION } from '../http/classify.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import type { HttpRoutes, RequestHandler } from '../http/listen.ts'
import { invalidMessage, type ReadRequest, requestIdOf, type ServeRequest } from '../http/read-request.ts'
import { DEFAULT_WORKSPACE, requestedWorkspace, TWO_WORKSPACES } from '../http/request-url.ts'
import { rejectUnread, sendEmpty, sendError } from '../http/response.ts'
import { INITIALIZED, readInitialize } from '../sessions/handshake.ts'
import { type Responder, receiveMessage } from '../sessions/receive.ts'
import { BodyWriter, EMPTY_RESPONDER, handshakeOrigin, type ResponseWriter } from '../sessions/response-collector.ts'
import type { ClientChannel, PostEndpoint } from './channel.ts'
import type { ClientChannels } from './channels.ts'
import { serveOnce } from './one-shot.ts'

const UNKNOWN_CHANNEL = rpcError(
  'invalidRequest',
  'Session not found: its stream has closed or is not yours; open a new one',
)
const ONE_STREAM = rpcError('invalidRequest', 'This session is an SSE channel: it has the stream it was opened with')
const GET_ONLY = rpcError('invalidRequest', 'Method not allowed: open an SSE channel here with GET')
const POST_ONLY = rpcError('invalidRequest', 'Method not allowed: send messages here with POST')
const NOT_ACCEPTABLE = rpcError('invalidRequest', 'Not Acceptable: the client must accept text/event-stream')

const ACCEPTED = Buffer.from('Accepted')

const sendAccepted = ({ response }: FrontRequest): void => {
  response.writeHead(202, { 'content-type': 'text/plain', 'content-length': ACCEPTED.length })
  response.end(ACCEPTED)
}

/** Writes responses to the channel, and to the body of the POST if that has not been sent yet. */
const createWriter = (channel: ClientChannel, endpoint: PostEndpoint, body?: BodyWriter): ResponseWriter => ({
  canSendMore: true,
  send: (pieces, merge) => channel.send(pieces, merge),
  expect: (call, id) => {
    const respondInBody = body?.expect(call, id)
    const endRecord = id && channel.recordCall?.(id)
    return (outcome, error) => {
      channel.respond(endpoint, outcome)
      respondInBody?.(outcome, error)
      endRecord?.()
    }
  },
})

const createResponder = (endpoint: PostEndpoint, accept = EMPTY_RESPONDER.accept): Responder<ClientChannel> => ({
  createWriter: (channel, request) => {
    accept(request)
    return createWriter(channel, endpoint)
  },
  accept,
  reject: EMPTY_RESPONDER.reject,
  sourceOf: EMPTY_RESPONDER.sourceOf,
})

/** How each endpoint responds to a message for a channel; `/message` repeats the responses in the body of the POST. */
const RESPONDERS: Readonly<Record<PostEndpoint, Responder<ClientChannel>>> = {
  messages: createResponder('messages', sendAccepted),
  mcp: createResponder('mcp'),
  message: {
    ...EMPTY_RESPONDER,
    createWriter: (channel, request, isBatch) =>
      createWriter(channel, 'message', new BodyWriter(channel.context, request, isBatch)),
  },
}

/** Serves 2024-11-05 to 2025-11-25 over HTTP+SSE: the stream is the session, and messages are posted beside it. */
export const createHttpSse = (channels: ClientChannels) => {
  const open = (request: FrontRequest, openedBy: 'sse' | 'mcp'): void => channels.open(request, openedBy)

  /** Serves `/sse` and the SSE paths of workspaces. */
  const serveOpening: ServeRequest = (request, incoming) => {
    const { response, raw } = request
    if (raw.method !== 'GET') return sendError(response, 405, requestIdOf(incoming), GET_ONLY, { allow: 'GET' })
    if (!request.acceptsSse) return sendError(response, 406, undefined, NOT_ACCEPTABLE)
    open(request, 'sse')
  }

  /** The channel of an id; undefined after the request was rejected. */
  const find = (request: FrontRequest, id: string, incoming?: Incoming): ClientChannel | undefined => {
    const channel = channels.find(id, request.principal)
    if (channel?.caller.workspace === request.workspace) return channel
    sendError(request.response, 404, requestIdOf(incoming), UNKNOWN_CHANNEL)
    return undefined
  }

  const post = (request: FrontRequest, incoming: Incoming, endpoint: PostEndpoint, id: string): void => {
    const channel = find(request, id, incoming)
    if (channel) receive(channel, request, incoming, endpoint)
  }

  /** Serves a message without a session id if its client has exactly one channel open at this endpoint. */
  const postSessionless = (request: FrontRequest, incoming: Incoming): boolean => {
    const channel = channels.findOnly(request)
    if (channel) receive(channel, request, incoming, 'mcp')
    return channel !== undefined
  }

  const receive = (channel: ClientChannel, request: FrontRequest, incoming: Incoming, endpoint: PostEndpoint): void => {
    if (incoming.kind === 'invalid')
      return sendError(request.response, 400, incoming.id, invalidMessage(incoming.reason))
    channel.setAccess(request)
    channel.recordUse(endpoint)
    try {
      if (incoming.kind === 'request' && incoming.method === 'initialize')
        initialize(channel, request, incoming, endpoint)
      else receiveMessage(channel, request, incoming, RESPONDERS[endpoint])
    } catch (error) {
      channel.fail(rpcError('internal')) // its client may wait on the channel for a response that will never come
      throw error
    }
  }

  const initialize = (
    channel: ClientChannel,
    request: FrontRequest,
    { id, params }: Message & { kind: 'request' },
    endpoint: PostEndpoint,
  ): void => {
    if (channel.isInitialized) return sendError(request.response, 400, id, INITIALIZED)
    const call = new Abort()
    const respond = RESPONDERS[endpoint].createWriter(channel, request, false).expect(call, id)
    const reject = (error: RpcError) => respond(encodeError(id, error))
    const identity = readInitialize(params)
    if (typeof identity === 'string') return reject(rpcError('invalidParams', identity))
    const conflict = channel.inFlight.add(id, params, call) // so that it ends with the channel, as every call does
    if (conflict) return reject(conflict)
    channel.initialize(identity, handshakeOrigin(request, id, params), call, outcome => {
      channel.inFlight.delete(id)
      respond(outcome)
    })
  }

  const end = (request: FrontRequest, id: string): void => {
    const channel = find(request, id)
    if (!channel) return
    channel.end('closed')
    sendEmpty(request.response, 200)
  }

  const rejectStream = (request: FrontRequest, id: string): void => {
    if (find(request, id)) sendError(request.response, 405, undefined, ONE_STREAM, { allow: 'POST, DELETE' })
  }

  return {
    open,
    serveOpening,
    /** Whether this replica has a channel of this id. */
    has: (id: string): boolean => channels.get(id) !== undefined,
    workspaceOf: channels.workspaceOf,
    findHome: channels.findHome,
    post,
    postSessionless,
    end,
    rejectStream,
  }
}

export type HttpSse = ReturnType<typeof createHttpSse>

interface HttpSseOptions {
  readonly readRequest: ReadRequest
  readonly httpSse: HttpSse
}

/** The endpoints of HTTP+SSE: `/sse` opens a channel, the others accept its messages. */
export const createHttpSseRoutes = (context: FrontContext, { readRequest, httpSse }: HttpSseOptions): HttpRoutes => {
  const servePost =
    (endpoint: Exclude<PostEndpoint, 'mcp'>, id: string | undefined): ServeRequest =>
    (request, incoming) => {
      const { response } = request
      if (!incoming) return sendError(response, 405, undefined, POST_ONLY, { allow: 'POST' })
      if (id !== undefined) return httpSse.post(request, incoming, endpoint, id)
      if (endpoint === 'message') return serveOnce(context, request, incoming)
      sendError(response, 400, requestIdOf(incoming), NO_SESSION)
    }

  const route =
    (serve: (id: string | undefined) => ServeRequest): RequestHandler =>
    (raw, response) => {
      const id = channelInQuery(raw)
      const workspace = requestedWorkspace(raw, id && httpSse.workspaceOf(id))
      if (workspace === false) return rejectUnread(raw, response, 400, TWO_WORKSPACES)
      readRequest(raw, response, workspace ?? DEFAULT_WORKSPACE, serve(id))
    }

  const messages = route(id => servePost('messages', id))
  return {
    '/sse': route(() => httpSse.serveOpening),
    '/messages': messages,
    '/messages/': messages,
    '/message': route(id => servePost('message', id)),
  }
}
