import { Abort } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Incoming, Message } from '../../wire/json-rpc.ts'
import { type FrontContext, type FrontRequest, requestOwner } from '../http/front-request.ts'
import { lookupError, RETRY_SOON, requestIdOf } from '../http/read-request.ts'
import { expectsEvents, sendEmpty, sendError, sendEvents, sendJson, streamTo } from '../http/response.ts'
import { INITIALIZED, readInitialize } from '../sessions/handshake.ts'
import { type Responder, receiveMessage } from '../sessions/receive.ts'
import { type CallOutcome, EMPTY_RESPONDER, handshakeOrigin } from '../sessions/response-collector.ts'
import { type EventId, readEventId } from '../streams/event-id.ts'
import { endAtExpiry } from '../streams/token-expiry.ts'
import { RESUME_ERRORS, StreamReplay } from './replay.ts'
import { SessionReply } from './session-reply.ts'
import type { SessionLocation, StreamableSessions } from './sessions.ts'
import type { StreamableSession } from './streamable-session.ts'

const UNKNOWN_SESSION = rpcError('invalidRequest', 'Session not found: it has ended or is not yours; initialize again')
const NOT_ACCEPTABLE_STREAM = rpcError('invalidRequest', 'Not Acceptable: the client must accept text/event-stream')

const ELSEWHERE = rpcError('internal', 'Another replica serves this session; try again')

type ServeSession = (session: StreamableSession) => void

const RESPONDER: Responder<StreamableSession> = {
  createWriter: (session, request, isBatch) => new SessionReply(session, request, isBatch),
  ...EMPTY_RESPONDER,
}

/** Serves 2024-11-05 to 2025-11-25 over Streamable HTTP: a session per client, streams that outlive their sockets. */
export const createStreamable = (context: FrontContext, sessions: StreamableSessions) => {
  const { stallMs } = context.limits

  /** Serves a request with the session it names, or rejects it. Nothing waits if the session is in this process. */
  const withSession = (request: FrontRequest, id: Json | undefined, serve: ServeSession): void => {
    const located = sessions.locate(String(request.raw.headers['mcp-session-id']), request)
    if (!(located instanceof Promise)) return serveLocated(located, request, id, serve)
    located.then(
      found => tryServe(found, request, id, serve),
      error => sendError(request.response, 503, id, lookupError(error, context.log), RETRY_SOON),
    )
  }

  const tryServe: typeof serveLocated = (located, request, id, serve) => {
    try {
      if (!request.response.destroyed) serveLocated(located, request, id, serve)
    } catch (error) {
      context.log.error({ err: error }, 'request failed with an internal error')
      if (!request.response.headersSent) sendError(request.response, 500, id, rpcError('internal'))
    }
  }

  const serveLocated = (
    located: SessionLocation,
    request: FrontRequest,
    id: Json | undefined,
    serve: ServeSession,
  ): void => {
    const { raw, response } = request
    if (located.kind === 'none') return sendError(response, 404, id, UNKNOWN_SESSION)
    if (located.kind === 'elsewhere') return sendError(response, 503, id, ELSEWHERE, RETRY_SOON)
    const { session } = located
    session.setAccess(request)
    const version = raw.headers['mcp-protocol-version']
    if (version === undefined || version === session.caller.revision) return serve(session)
    const message = `Bad Request: MCP-Protocol-Version is '${version}', this session speaks ${session.caller.revision}`
    sendError(response, 400, id, rpcError('invalidRequest', message))
  }

  /** Serves a GET with the session whose stream it asks for, or rejects it. */
  const withStream = (request: FrontRequest, serve: ServeSession): void => {
    if (request.acceptsSse)
      return withSession(request, undefined, session => {
        serve(session)
        endAtExpiry(request.response, () => session.expires)
      })
    sendError(request.response, 406, undefined, NOT_ACCEPTABLE_STREAM)
  }

  const initialize = (request: FrontRequest, { params, id }: Message & { kind: 'request' }): void => {
    const { raw, response, workspace, principal, policy, scopes, token } = request
    if (raw.headers['mcp-session-id'] !== undefined)
      return withSession(request, id, () => sendError(response, 400, id, INITIALIZED))
    const identity = readInitialize(params)
    if (typeof identity === 'string') return sendError(response, 400, id, rpcError('invalidParams', identity))
    const session = sessions.create({ workspace, principal, policy, scopes, ...identity }, requestOwner(request), token)
    const abort = new Abort()
    response.on('close', () => abort.abort({ kind: 'gone' }))
    session.initialize(identity, handshakeOrigin(request, id, params), abort, outcome => {
      if (session.isInitialized) return accept(request, session, outcome)
      sendOutcome(request, session, outcome, {})
      session.end()
    })
  }

  const accept = (request: FrontRequest, session: StreamableSession, outcome: CallOutcome): void => {
    const send = (): void => sendOutcome(request, session, outcome, { 'mcp-session-id': session.id })
    const saving = sessions.add(session)
    if (!saving) return send()
    void saving.then(() => {
      if (request.response.destroyed)
        void sessions.end(session) // its client does not know it
      else send()
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
    if (request.acceptsJson && !expectsEvents(request, session.caller.revision))
      return sendJson(response, 200, outcome, headers)
    sendEvents(response, [outcome], headers)
  }

  const message = (request: FrontRequest, incoming: Incoming): void =>
    withSession(request, requestIdOf(incoming), session => receiveMessage(session, request, incoming, RESPONDER))

  const stream = (request: FrontRequest): void =>
    withStream(request, session => {
      session.listen()
      const log = session.serverStream()
      const { response } = request
      response.cork() // the headers leave with the first event
      streamTo(response, log, stallMs)
      session.prime(log) // after the attach: before, the event would go to the reader this one replaces
      response.uncork()
    })

  const resume = (request: FrontRequest): void =>
    withStream(request, session => {
      const { response, raw } = request
      const event = readEventId(String(raw.headers['last-event-id']))
      if (!event) return sendError(response, 400, undefined, RESUME_ERRORS.malformed)
      const log = session.findStream(event.key)
      if (!log) return replay(request, session, event)
      const { sequence } = event
      if (!log.holds(sequence)) return sendError(response, 400, undefined, RESUME_ERRORS.tooOld)
      // An empty stream would make the client reconnect for ever.
      if (log.isFinished && sequence === log.next - 1)
        return sendError(response, 405, undefined, RESUME_ERRORS.nothingLeft, { allow: 'POST, DELETE' })
      streamTo(response, log, stallMs, sequence + 1)
    })

  /** Resumes a stream of a former process. */
  const replay = (request: FrontRequest, session: StreamableSession, event: EventId): void => {
    const { response } = request
    const { stored } = session
    if (!stored || event.epoch >= stored.epoch || !session.hasMade(event))
      return sendError(response, 400, undefined, RESUME_ERRORS.unknown)
    const former = new StreamReplay(session, stored, request, event)
    const replaying = event.isServerStream ? former.continueServerStream() : former.finishPostStream()
    replaying.catch((error: unknown) => {
      const shown = lookupError(error, context.log)
      if (response.headersSent) response.destroy()
      else sendError(response, 503, undefined, shown, RETRY_SOON)
    })
  }

  const end = (request: FrontRequest): void =>
    withSession(request, undefined, session => {
      const removing = sessions.end(session)
      const send = (): void => sendEmpty(request.response, 200)
      if (removing) void removing.then(send)
      else send()
    })

  return { initialize, message, stream, resume, end }
}

export type Streamable = ReturnType<typeof createStreamable>
