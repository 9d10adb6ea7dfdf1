import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ConfigDifference } from '../../config/difference.ts'
import { ConfigError } from '../../config/problems.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Log } from '../../telemetry/log.ts'
import { readBody } from '../../wire/http-body.ts'
import { Json } from '../../wire/json/json.ts'
import type { HttpRoutes, RequestHandler } from '../http/listen.ts'
import { PRIVATE_HEADERS, rejectUnread, sendError, sendJson } from '../http/response.ts'

/** Options of the endpoints for the user who runs the gateway. */
interface AdminOptions {
  /** Whether a secret is that of this process, which only programs of the same user on this machine can read. */
  readonly isOwner: (secret: string) => boolean
  /** What a configuration file would change; undefined: the gateway's own file. */
  readonly plan: (file: string | undefined) => Promise<ConfigDifference>
  readonly log: Log
}

const POST_ONLY = rpcError('invalidRequest', 'Method not allowed: use POST')
const NOT_OWNER = rpcError('invalidRequest', 'Forbidden: only for programs of the same user on this machine')
const MAX_BODY_BYTES = 64 * 1024

export const createAdminRoutes = ({ isOwner, plan, log }: AdminOptions): HttpRoutes => {
  const sendPlan = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const body = await readBody(request, MAX_BODY_BYTES)
      const file = body.length === 0 ? undefined : Json.parse(body).get('file')?.asString()
      sendJson(response, 200, [Buffer.from(JSON.stringify(await plan(file)))], PRIVATE_HEADERS)
    } catch (error) {
      if (error instanceof ConfigError)
        return sendError(response, 422, undefined, rpcError('invalidRequest', error.message))
      log.error({ err: error }, 'configuration could not be compared')
      if (!response.headersSent) sendError(response, 500, undefined, rpcError('internal'))
    }
  }

  const handlePlan: RequestHandler = (request, response) => {
    const secret = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
    if (!isOwner(secret)) return rejectUnread(request, response, 403, NOT_OWNER)
    if (request.method !== 'POST') return rejectUnread(request, response, 405, POST_ONLY, { allow: 'POST' })
    void sendPlan(request, response)
  }

  return { '/admin/plan': handlePlan }
}
