import { Abort } from '../protocol/abort.ts'
import { rpcError } from '../protocol/errors.ts'
import { META } from '../protocol/meta.ts'
import { isModern, isRevision, NEWEST_LEGACY } from '../protocol/revisions.ts'
import { Json } from '../wire/json.ts'
import { errorPieces, type Incoming, type Message, resultPieces } from '../wire/json-rpc.ts'
import { sendEmpty, sendError, sendJson, streamTo } from './reply.ts'
import type { Session } from './session.ts'
import { receive } from './session-messages.ts'
import type { Sessions } from './sessions.ts'
import type { House, Visit } from './visit.ts'

const DEAD_SESSION = rpcError('invalidRequest', 'Session not found: it has ended or is not yours; initialize again')
const UNKNOWN_EVENT = rpcError('invalidRequest', 'Unknown Last-Event-ID: the events after it are no longer kept')
const NOTHING_LEFT = rpcError('invalidRequest', 'Nothing is left of that stream')

/** 2024-11-05 to 2025-11-25 over Streamable HTTP: a session per client, streams that survive their sockets. */
export const createStreamable = (house: House, sessions: Sessions) => {
  /** The session a request names, or nothing after having refused it. */
  const enter = (visit: Visit, id: Json | undefined): Session | undefined => {
    const { headers } = visit.request
    const session = sessions.find(String(headers['mcp-session-id']), visit.principal, visit.workspace)
    if (!session) {
      sendError(visit.response, 404, id, DEAD_SESSION)
      return undefined
    }
    const version = headers['mcp-protocol-version']
    if (version === undefined || version === session.caller.revision) return session
    const message = `Bad Request: MCP-Protocol-Version is '${version}', this session speaks ${session.caller.revision}`
    sendError(visit.response, 400, id, rpcError('invalidRequest', message))
    return undefined
  }

  const initialize = (visit: Visit, request: Message & { kind: 'request' }): void => {
    const { params, id } = request
    if (visit.request.headers['mcp-session-id'] !== undefined) {
      const session = enter(visit, id)
      if (session) sendError(visit.response, 400, id, rpcError('invalidRequest', 'This session is already initialized'))
      return
    }
    const problem = checkInitialize(params)
    if (problem) return sendError(visit.response, 400, id, rpcError('invalidParams', problem))
    const wanted = params.get('protocolVersion')?.asString()
    const session = sessions.create({
      workspace: visit.workspace,
      principal: visit.principal,
      revision: isRevision(wanted) && !isModern(wanted) ? wanted : NEWEST_LEGACY,
      capabilities: params.get('capabilities') ?? Json.empty,
      info: params.get('clientInfo'),
    })
    discover(visit, session, id)
  }

  const discover = (visit: Visit, session: Session, id: Json): void => {
    const abort = new Abort()
    const answer = (pieces: Buffer[], headers?: Record<string, string>) => {
      house.active.delete(abort)
      if (visit.response.destroyed) return
      if (visit.takesJson) return sendJson(visit.response, 200, pieces, headers)
      const log = session.open()
      void log.append(pieces)
      log.finish()
      streamTo(visit.response, log, { stallMs: house.limits.stallMs, ...(headers && { headers }), sequence: 0 })
    }
    house.active.add(abort, false)
    visit.response.on('close', () => abort.abort({ kind: 'gone' }))
    house.dispatch({
      kind: 'request',
      method: 'server/discover',
      params: Json.empty,
      caller: session.caller,
      signal: abort,
      sink: frame => {
        if (frame.kind === 'failure') {
          session.end()
          answer(errorPieces(id, frame.error))
        } else if (frame.kind === 'result') {
          sessions.keep(session)
          answer(resultPieces(id, initializeResult(session, frame.result)), { 'mcp-session-id': session.id })
        }
      },
    })
  }

  const message = (visit: Visit, incoming: Incoming): void => {
    const session = enter(visit, 'id' in incoming ? incoming.id : undefined)
    if (session) receive(house, session, visit, incoming)
  }

  const stream = (visit: Visit): void => {
    if (!visit.takesSse) return sendError(visit.response, 406, undefined, NOT_ACCEPTABLE_STREAM)
    const session = enter(visit, undefined)
    if (!session) return
    session.begin()
    const log = session.inbox()
    session.prime(log)
    streamTo(visit.response, log, { stallMs: house.limits.stallMs })
  }

  const resume = (visit: Visit): void => {
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

  const end = (visit: Visit): void => {
    const session = enter(visit, undefined)
    if (!session) return
    sessions.end(session)
    sendEmpty(visit.response, 200)
  }

  return { initialize, message, stream, resume, end }
}

const NOT_ACCEPTABLE_STREAM = rpcError('invalidRequest', 'Not Acceptable: the client must accept text/event-stream')

const checkInitialize = (params: Json): string | undefined => {
  if (params.get('protocolVersion')?.asString() === undefined) return '`protocolVersion` must be a string'
  const capabilities = params.get('capabilities')
  return capabilities && !capabilities.isObject ? '`capabilities` must be an object' : undefined
}

const initializeResult = (session: Session, discovered: Json): Json => {
  const meta = discovered.get('_meta')
  const rest = meta?.without(META.serverInfo)
  return Json.of({
    protocolVersion: session.caller.revision,
    capabilities: discovered.get('capabilities') ?? {},
    serverInfo: meta?.get(META.serverInfo) ?? { name: 'dragoman', version: 'unknown' },
    instructions: discovered.get('instructions'),
    _meta: rest && rest.entries().length > 0 ? rest : undefined,
  })
}
