import { rpcError } from '../../protocol/errors.ts'
import { DEFAULT_WORKSPACE, readWorkspace, TWO_WORKSPACES } from '../http/choose-workspace.ts'
import { NO_SESSION } from '../http/classify.ts'
import type { FrontContext } from '../http/front-request.ts'
import type { Handler, Routes } from '../http/listen.ts'
import { idOf, type ReadRequest, type Serve } from '../http/read-request.ts'
import { readQuery } from '../http/request-query.ts'
import { refuseUnread, sendError } from '../http/response.ts'
import type { Door } from './channel.ts'
import type { HttpSse } from './http-sse.ts'
import { serveOnce } from './one-shot.ts'

const GET_ONLY = rpcError('invalidRequest', 'Method not allowed: GET opens an SSE channel here')
const POST_ONLY = rpcError('invalidRequest', 'Method not allowed: messages are POSTed here')
const NOT_ACCEPTABLE = rpcError('invalidRequest', 'Not Acceptable: the client must accept text/event-stream')

interface Options {
  readonly enter: ReadRequest
  readonly httpSse: HttpSse
}

/** What `/sse` does, wherever it is. */
export const createOpening =
  (httpSse: HttpSse): Serve =>
  (visit, incoming) => {
    const { response, request } = visit
    if (request.method !== 'GET') return sendError(response, 405, idOf(incoming), GET_ONLY, { allow: 'GET' })
    if (!visit.takesSse) return sendError(response, 406, undefined, NOT_ACCEPTABLE)
    httpSse.open(visit, 'sse')
  }

/** The doors of HTTP+SSE: one that opens a channel, and those its messages are posted to. */
export const createChannelDoors = (house: FrontContext, { enter, httpSse }: Options): Routes => {
  const open = createOpening(httpSse)

  const take =
    (door: Exclude<Door, 'mcp'>, id: string | undefined): Serve =>
    (visit, incoming) => {
      const { response } = visit
      if (!incoming) return sendError(response, 405, undefined, POST_ONLY, { allow: 'POST' })
      if (id !== undefined) return httpSse.post(visit, incoming, door, id)
      if (door === 'message') return serveOnce(house, visit, incoming)
      sendError(response, 400, idOf(incoming), NO_SESSION)
    }

  const route =
    (serve: (id: string | undefined) => Serve): Handler =>
    (request, response) => {
      const query = readQuery(request)
      const id = query.get('session_id') || query.get('sessionId') || undefined
      const workspace = readWorkspace(request, id && httpSse.workspaceOf(id))
      if (workspace === false) return refuseUnread(request, response, 400, TWO_WORKSPACES)
      enter(request, response, workspace ?? DEFAULT_WORKSPACE, serve(id))
    }

  const messages = route(id => take('messages', id))
  return {
    '/sse': route(() => open),
    '/messages': messages,
    '/messages/': messages,
    '/message': route(id => take('message', id)),
  }
}
