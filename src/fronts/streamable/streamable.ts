import { Abort } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Incoming, Message } from '../../wire/json-rpc.ts'
import { type FrontContext, type FrontRequest, requestOwner } from '../http/front-request.ts'
import { requestIdOf } from '../http/read-request.ts'
import { expectsEvents, sendEmpty, sendError, sendEvents, sendJson, streamTo } from '../http/response.ts'
import { INITIALIZED, readInitialize } from '../sessions/handshake.ts'
import { type Responder, receiveMessage } from '../sessions/receive.ts'
import { type CallOutcome, EMPTY_RESPONDER } from '../sessions/response-collector.ts'
import { SessionReply } from './session-reply.ts'
import type { StreamableSession, StreamableSessions } from './sessions.ts'

const UNKNOWN_SESSION = rpcError('invalidRequest', 'Session not found: it has ended or is not yours; initialize again')
const UNKNOWN_EVENT = rpcError('invalidRequest', 'Unknown Last-Event-ID: the events after it are no longer kept')
const NOTHING_LEFT = rpcError('invalidRequest', 'Nothing is left of that stream')
const NOT_ACCEPTABLE_STREAM = rpcError('invalidRequest', 'Not Acceptable: the client must accept text/event-stream')

const RESPONDER: Responder<StreamableSession> = {
  createWriter: (session, request, isBatch) => new SessionReply(session, request, isBatch),
  ...EMPTY_RESPONDER,
}

/** Serves 2024-11-05 to 2025-11-25 over Streamable HTTP: a session per client, streams that outlive their sockets. */
export const createStreamable = (context: FrontContext, sessions: StreamableSessions) => {
  const { stallMs } = context.limits

  /** The session a request names; undefined after the request was rejected. */
  const findSession = (request: FrontRequest, id?: Json): StreamableSession | undefined => {
    const { headers } = request.raw
    const session = sessions.find(String(headers['mcp-session-id']), request.principal, request.workspace)
    if (!session) {
      sendError(request.response, 404, id, UNKNOWN_SESSION)
      return undefined
    }
    session.setPolicy(request.policy)
    const version = headers['mcp-protocol-version']
    if (version === undefined || version === session.caller.revision) return session
    const message = `Bad Request: MCP-Protocol-Version is '${version}', this session speaks ${session.caller.revision}`
    sendError(request.response, 400, id, rpcError('invalidRequest', message))
    return undefined
  }

  /** The session whose stream a GET asks for; undefined after the request was rejected. */
  const findForStream = (request: FrontRequest): StreamableSession | undefined => {
    if (request.acceptsSse) return findSession(request)
    sendError(request.response, 406, undefined, NOT_ACCEPTABLE_STREAM)
    return undefined
  }

  const initialize = (request: FrontRequest, { params, id }: Message & { kind: 'request' }): void => {
    const { raw, response, workspace, principal, policy } = request
    if (raw.headers['mcp-session-id'] !== undefined) {
      if (findSession(request, id)) sendError(response, 400, id, INITIALIZED)
      return
    }
    const identity = readInitialize(params)
    if (typeof identity === 'string') return sendError(response, 400, id, rpcError('invalidParams', identity))
    const session = sessions.create({ workspace, principal, policy, ...identity }, requestOwner(request))
    const abort = new Abort()
    response.on('close', () => abort.abort({ kind: 'gone' }))
    session.initialize(identity, id, abort, outcome => {
      const isAccepted = session.isInitialized
      if (isAccepted) sessions.add(session, raw)
      sendOutcome(request, session, outcome, isAccepted ? { 'mcp-session-id': session.id } : {})
      if (!isAccepted) session.end()
    })
  }

  const sendOutcome = (
    request: FrontRequest,
    session: StreamableSession,
    outcome: CallOutcome,
    headers: Record<string, string>,
  ): void => {
    const { response } = request
    if (response.destroyed || outcome === 'none') return
    if (expectsEvents(request, session.caller.revision)) return sendEvents(response, [outcome], headers)
    if (request.acceptsJson) return sendJson(response, 200, outcome, headers)
    const log = session.openStream()
    void log.append(outcome)
    log.finish()
    streamTo(response, log, stallMs, 0, headers)
  }

  const message = (request: FrontRequest, incoming: Incoming): void => {
    const session = findSession(request, requestIdOf(incoming))
    if (session) receiveMessage(session, request, incoming, RESPONDER)
  }

  const stream = (request: FrontRequest): void => {
    const session = findForStream(request)
    if (!session) return
    session.listen()
    const log = session.serverStream()
    streamTo(request.response, log, stallMs)
    session.prime(log) // after the attach: before, the event would go to the reader this one replaces
  }

  const resume = (request: FrontRequest): void => {
    const session = findForStream(request)
    if (!session) return
    const lastId = String(request.raw.headers['last-event-id'])
    const [, key = '', number = ''] = /^(\w+)\.(\d+)$/.exec(lastId) ?? []
    const log = session.findStream(key)
    const sequence = Number(number)
    if (!log?.holds(sequence)) return sendError(request.response, 400, undefined, UNKNOWN_EVENT)
    // An empty stream would make the client reconnect for ever.
    if (log.isFinished && sequence === log.next - 1)
      return sendError(request.response, 405, undefined, NOTHING_LEFT, { allow: 'POST, DELETE' })
    streamTo(request.response, log, stallMs, sequence + 1)
  }

  const end = (request: FrontRequest): void => {
    const session = findSession(request)
    if (!session) return
    sessions.end(session)
    sendEmpty(request.response, 200)
  }

  return { initialize, message, stream, resume, end }
}

export type Streamable = ReturnType<typeof createStreamable>
