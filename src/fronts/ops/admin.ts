import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Difference } from '../../config/difference.ts'
import { ConfigError } from '../../config/problems.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Log } from '../../telemetry/log.ts'
import { readBody } from '../../wire/http-body.ts'
import { Json } from '../../wire/json/json.ts'
import type { Handler, Routes } from '../http/listen.ts'
import { PRIVATE_HEADERS, refuseUnread, sendError, sendJson } from '../http/response.ts'

interface Options {
  /** Whether a secret is that of this process: only programs of the same user on this machine can know it. */
  readonly isOwner: (secret: string) => boolean
  /** What a configuration file would change, or the gateway's own file if none is named. */
  readonly plan: (file: string | undefined) => Promise<Difference>
  readonly log: Log
}

const POST_ONLY = rpcError('invalidRequest', 'Method not allowed: this is asked with POST')
const NOT_YOURS = rpcError('invalidRequest', 'Forbidden: this is for programs of the same user on this machine')
const MOST_BYTES = 64 * 1024

/** What only the user who runs the gateway may ask of it. */
export const createAdmin = ({ isOwner, plan, log }: Options): Routes => {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const body = await readBody(request, MOST_BYTES)
      const file = body.length === 0 ? undefined : Json.parse(body).get('file')?.asString()
      sendJson(response, 200, [Buffer.from(JSON.stringify(await plan(file)))], PRIVATE_HEADERS)
    } catch (error) {
      if (error instanceof ConfigError)
        return sendError(response, 422, undefined, rpcError('invalidRequest', error.message))
      log.error({ err: error }, 'a plan could not be made')
      if (!response.headersSent) sendError(response, 500, undefined, rpcError('internal'))
    }
  }

  const planned: Handler = (request, response) => {
    const secret = /^Bearer +(\S+) *$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
    if (!isOwner(secret)) return refuseUnread(request, response, 403, NOT_YOURS)
    if (request.method !== 'POST') return refuseUnread(request, response, 405, POST_ONLY, { allow: 'POST' })
    void answer(request, response)
  }

  return { '/admin/plan': planned }
}
