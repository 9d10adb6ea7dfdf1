import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ConfigDifference } from '../config/difference.ts'
import { ConfigError } from '../config/problems.ts'
import type { HttpRoutes, RequestHandler } from '../fronts/http/listen.ts'
import { PRIVATE_HEADERS, rejectUnread, sendError, sendJson } from '../fronts/http/response.ts'
import type { RequestInfo } from '../protocol/admission.ts'
import { rpcError } from '../protocol/errors.ts'
import type { GatewayStatus } from '../protocol/status.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'
import type { LogHistory } from '../telemetry/log-history.ts'
import { readBody } from '../wire/http-body.ts'
import { Json } from '../wire/json/json.ts'
import { streamLog } from './log-stream.ts'
import { createLoginEndpoints, type LoginRoutesOptions } from './login-routes.ts'

/** What the program that runs the gateway lets its owner do. */
export interface GatewayControl {
  /** Reads the configuration file again and applies it; rejects with a ConfigError. */
  reload(): Promise<ConfigDifference>
  /** Closes the gateway and starts it again in the same process; rejects with a ConfigError, and then changes nothing. */
  restart(): Promise<void>
  stop(): void
}

/** Options of the endpoints for the user who runs the gateway. */
interface AdminOptions {
  /** Whether a secret is that of this process, which only programs of the same user on this machine can read. */
  readonly isOwner: (secret: string) => boolean
  /** Whether the token of a request may see the whole gateway. */
  readonly isOperator: (request: RequestInfo) => Promise<boolean>
  readonly status: () => GatewayStatus
  /** What a configuration file would change; undefined: the gateway's own file. */
  readonly plan: (file: string | undefined) => Promise<ConfigDifference>
  readonly control?: GatewayControl | undefined // absent: another program embeds the gateway
  readonly history?: LogHistory | undefined
  readonly writeAudit?: WriteAuditEvent | undefined // undefined: there is no audit log
  readonly logins?: LoginRoutesOptions | undefined // absent: no server is called with OAuth
  readonly log: Log
}

/** One endpoint: tokens for every workspace may read some, only the owner may use the others. */
export interface AdminEndpoint {
  readonly method: 'GET' | 'POST'
  readonly access: 'operator' | 'owner'
  readonly run: (request: IncomingMessage, response: ServerResponse) => unknown
}

const NOT_OWNER = rpcError('invalidRequest', 'Forbidden: only for programs of the same user on this machine')
const NOT_OPERATOR = rpcError('invalidRequest', 'Forbidden: needs a token for every workspace')
const EMBEDDED = new ConfigError('the program that embeds this gateway controls it')
const MAX_BODY_BYTES = 64 * 1024
const LOGS = '/admin/logs'

export const createAdminRoutes = (options: AdminOptions): HttpRoutes => {
  const { isOwner, isOperator, status, plan, control, history, writeAudit, logins, log } = options
  const owned = (): GatewayControl => {
    if (control) return control
    throw EMBEDDED
  }

  const endpoints: Readonly<Record<string, AdminEndpoint>> = {
    '/admin/status': { method: 'GET', access: 'operator', run: status },
    [LOGS]: {
      method: 'GET',
      access: 'owner',
      run: (request, response) => streamLog(request, response, history),
    },
    '/admin/plan': { method: 'POST', access: 'owner', run: async request => plan(await fileIn(request)) },
    '/admin/reload': { method: 'POST', access: 'owner', run: () => owned().reload() },
    '/admin/restart': { method: 'POST', access: 'owner', run: async () => ({ done: await owned().restart() }) },
    '/admin/stop': { method: 'POST', access: 'owner', run: () => ({ done: owned().stop() }) },
    ...(logins && createLoginEndpoints(logins)),
  }

  /** Reading the status is no event: programs poll it. */
  const audit = (path: string, { socket, method }: IncomingMessage, outcome: 'ok' | 'error' | 'denied'): void => {
    if (outcome === 'denied' || method !== 'GET' || path === LOGS)
      writeAudit?.('admin', { action: path, address: socket.remoteAddress, outcome })
  }

  const answer = async (path: string, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const result = await endpoints[path]?.run(request, response)
      audit(path, request, 'ok')
      if (!response.headersSent) sendJson(response, 200, [Buffer.from(JSON.stringify(result))], PRIVATE_HEADERS)
    } catch (error) {
      audit(path, request, 'error')
      if (error instanceof ConfigError)
        return sendError(response, 422, undefined, rpcError('invalidRequest', error.message))
      log.error({ err: error, path: request.url }, 'administration request failed')
      if (!response.headersSent) sendError(response, 500, undefined, rpcError('internal'))
    }
  }

  const handlerOf =
    (path: string, { access, method }: AdminEndpoint): RequestHandler =>
    (request, response) => {
      const decide = (isAllowed: boolean): void => {
        if (!isAllowed) {
          audit(path, request, 'denied')
          return rejectUnread(request, response, 403, access === 'owner' ? NOT_OWNER : NOT_OPERATOR)
        }
        if (request.method === method) return void answer(path, request, response)
        const wrong = rpcError('invalidRequest', `Method not allowed: use ${method}`)
        rejectUnread(request, response, 405, wrong, { allow: method })
      }
      const isOwned = isOwner(bearerOf(request))
      if (isOwned || access === 'owner') return decide(isOwned)
      isOperator(request).then(decide, (error: unknown) => {
        log.error({ err: error, path: request.url }, 'administration request failed')
        rejectUnread(request, response, 500, rpcError('internal'))
      })
    }

  return Object.fromEntries(Object.entries(endpoints).map(([path, endpoint]) => [path, handlerOf(path, endpoint)]))
}

const bearerOf = ({ headers }: IncomingMessage): string =>
  /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? ''

const fileIn = async (request: IncomingMessage): Promise<string | undefined> => {
  const body = await readBody(request, MAX_BODY_BYTES)
  return body.length === 0 ? undefined : Json.parse(body).get('file')?.asString()
}
