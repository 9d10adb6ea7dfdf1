import { Abort } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Incoming, Message } from '../../wire/json-rpc.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import { sendEmpty, sendError, sendEvents, sendJson, streamTo, wantsEvents } from '../http/response.ts'
import type { Outcome } from '../sessions/answers.ts'
import { readHello, shakeHands } from '../sessions/handshake.ts'
import { quotaOwner } from '../sessions/owner.ts'
import { type Manner, receive } from '../sessions/receive.ts'
import type { Session } from './session.ts'
import { SessionReply } from './session-reply.ts'
import type { Sessions } from './sessions.ts'

const DEAD_SESSION = rpcError('invalidRequest', 'Session not found: it has ended or is not yours; initialize again')
const INITIALIZED = rpcError('invalidRequest', 'This session is already initialized')
const UNKNOWN_EVENT = rpcError('invalidRequest', 'Unknown Last-Event-ID: the events after it are no longer kept')
const NOTHING_LEFT = rpcError('invalidRequest', 'Nothing is left of that stream')
const NOT_ACCEPTABLE_STREAM = rpcError('invalidRequest', 'Not Acceptable: the client must accept text/event-stream')

const MANNER: Manner<Session> = {
  reply: (house, session, visit, isBatch) => new SessionReply(house, session, visit, isBatch),
  accept: visit => sendEmpty(visit.response, 202),
  refuse: (visit, error) => sendError(visit.response, 400, undefined, error),
}

/** 2024-11-05 to 2025-11-25 over Streamable HTTP: a session per client, streams that survive their sockets. */
export const createStreamable = (house: FrontContext, sessions: Sessions) => {
  /** The session a request names, or nothing after having refused it. */
  const enter = (visit: FrontRequest, id: Json | undefined): Session | undefined => {
    const { headers } = visit.request
    const session = sessions.find(String(headers['mcp-session-id']), visit.principal, visit.workspace)
    if (!session) {
      sendError(visit.response, 404, id, DEAD_SESSION)
      return undefined
    }
    session.allow(visit.policy)
    const version = headers['mcp-protocol-version']
    if (version === undefined || version === session.caller.revision) return session
    const message = `Bad Request: MCP-Protocol-Version is '${version}', this session speaks ${session.caller.revision}`
    sendError(visit.response, 400, id, rpcError('invalidRequest', message))
    return undefined
  }

  const initialize = (visit: FrontRequest, { params, id }: Message & { kind: 'request' }): void => {
    const { response, workspace, principal, policy } = visit
    if (visit.request.headers['mcp-session-id'] !== undefined) {
      if (enter(visit, id)) sendError(response, 400, id, INITIALIZED)
      return
    }
    const hello = readHello(params)
    if (typeof hello === 'string') return sendError(response, 400, id, rpcError('invalidParams', hello))
    const session = sessions.create({ workspace, principal, policy, ...hello }, quotaOwner(visit))
    const abort = new Abort()
    response.on('close', () => abort.abort({ kind: 'gone' }))
    shakeHands(house, session.caller, id, abort, (outcome, isWelcome) => {
      if (isWelcome) sessions.keep(session, visit.request)
      welcome(visit, session, outcome, isWelcome ? { 'mcp-session-id': session.id } : {})
      if (!isWelcome) session.end()
    })
  }

  const welcome = (visit: FrontRequest, session: Session, outcome: Outcome, headers: Record<string, string>): void => {
    if (visit.response.destroyed || outcome === 'none') return
    if (wantsEvents(visit, session.caller.revision)) return sendEvents(visit.response, [outcome], headers)
    if (visit.takesJson) return sendJson(visit.response, 200, outcome, headers)
    const log = session.open()
    void log.append(outcome)
    log.finish()
    streamTo(visit.response, log, { stallMs: house.limits.stallMs, headers, sequence: 0 })
  }

  const message = (visit: FrontRequest, incoming: Incoming): void => {
    const session = enter(visit, 'id' in incoming ? incoming.id : undefined)
    if (session) receive(house, session, visit, incoming, MANNER)
  }

  const stream = (visit: FrontRequest): void => {
    if (!visit.takesSse) return sendError(visit.response, 406, undefined, NOT_ACCEPTABLE_STREAM)
    const session = enter(visit, undefined)
    if (!session) return
    session.begin()
    const log = session.inbox()
    streamTo(visit.response, log, { stallMs: house.limits.stallMs })
    session.prime(log) // now: before, it would go to the reader this one replaces
  }

  const resume = (visit: FrontRequest): void => {
    if (!visit.takesSse) return sendError(visit.response, 406, undefined, NOT_ACCEPTABLE_STREAM)
    const session = enter(visit, undefined)
    if (!session) return
    const lastId = String(visit.request.headers['last-event-id'])
    const [, key = '', number = ''] = /^(\w+)\.(\d+)$/.exec(lastId) ?? []
    const log = session.stream(key)
    const sequence = Number(number)
    if (!log?.holds(sequence)) return sendError(visit.response, 400, undefined, UNKNOWN_EVENT)
    // An empty stream would make the client come back for ever.
    if (log.isFinished && sequence === log.next - 1)
      return sendError(visit.response, 405, undefined, NOTHING_LEFT, { allow: 'POST, DELETE' })
    streamTo(visit.response, log, { stallMs: house.limits.stallMs, sequence: sequence + 1 })
  }

  const end = (visit: FrontRequest): void => {
    const session = enter(visit, undefined)
    if (!session) return
    sessions.end(session)
    sendEmpty(visit.response, 200)
  }

  return { initialize, message, stream, resume, end }
}

export type Streamable = ReturnType<typeof createStreamable>
