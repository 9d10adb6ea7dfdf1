import type { IncomingMessage, ServerResponse } from 'node:http'
import { ConfigError } from '../config/problems.ts'
import type { HttpRoutes, RequestHandler } from '../fronts/http/listen.ts'
import { discardBody, PRIVATE_HEADERS, sendJson } from '../fronts/http/response.ts'
import { clientAddressOf } from '../protocol/admission.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'
import { BodyAborted, BodyTooLarge, readBody } from '../wire/http-body.ts'
import { Json } from '../wire/json/json.ts'
import type { AdminErrorBody, AdminRole } from './api/session.ts'
import type { AdminCaller } from './callers.ts'
import {
  type AdminCall,
  type AdminEndpoint,
  AdminError,
  type AdminSchema,
  createPathMatcher,
  routePaths,
} from './endpoints.ts'

interface AdminRoutesOptions {
  readonly endpoints: readonly AdminEndpoint[]
  readonly findCaller: (request: IncomingMessage) => Promise<AdminCaller>
  /** Counts a request; returns the milliseconds to wait if its caller has sent too many. */
  readonly limitRate: (caller: AdminCaller, request: IncomingMessage) => number | undefined
  /** Says what is wrong with a body; undefined if it matches. */
  readonly checkBody: (schema: AdminSchema, body: unknown) => string | undefined
  readonly writeAudit?: WriteAuditEvent | undefined // undefined: there is no audit log
  readonly log: Log
}

const MAX_BODY_BYTES = 64 * 1024
const RANKS: Readonly<Record<AdminRole | 'anyone', number>> = { none: 0, anyone: 0, viewer: 1, owner: 2 }
const NEEDS_OWNER = new AdminError(
  403,
  'Forbidden: only for the owner of the gateway; open the link that "dragoman console" prints, or use a token created with --admin',
)

/** Serves a table of endpoints. */
export const createAdminRoutes = (options: AdminRoutesOptions): HttpRoutes => {
  const { endpoints, findCaller, limitRate, checkBody, writeAudit, log } = options
  const match = createPathMatcher(endpoints)

  const serve = async (request: IncomingMessage, response: ServerResponse, path: string): Promise<void> => {
    const found = match(path)
    if (!found) throw new AdminError(404, `Not Found: ${path}; GET /admin/openapi.json lists the endpoints`)
    const caller = await findCaller(request)
    if (response.destroyed) return // the client has left meanwhile: nothing would tell an endpoint that it has
    const waitMs = limitRate(caller, request)
    if (waitMs !== undefined) throw tooManyRequests(waitMs)
    const { role, principal } = caller
    const endpoint = found.endpoints.find(({ method }) => method === request.method)
    const audit = (outcome: 'ok' | 'error' | 'denied'): void =>
      writeAudit?.('admin', { action: path, principal, address: clientAddressOf(request), outcome })
    const refusal = refusalFor(caller, endpoint ?? found.endpoints[0])
    if (refusal) {
      audit('denied')
      throw refusal
    }
    if (!endpoint) throw methodNotAllowed(found.endpoints)
    if (caller.forgery && !endpoint.checksOrigin) {
      audit('denied')
      throw caller.forgery
    }
    const isAudited = endpoint.isAudited ?? endpoint.method !== 'GET' // reading is no event: programs poll
    const signal = closedSignal(response)
    const release = caller.onEnded?.(() => {
      if (response.headersSent) response.destroy() // a stream ends with its session
    })
    response.once('close', () => release?.())
    const query = new URL(request.url ?? '/', 'http://gateway').searchParams
    const json = (): Promise<Json> => readJson(request, endpoint, checkBody)
    const call: AdminCall = { params: found.params, query, json, request, response, role, principal, caller, signal }
    try {
      const result = await endpoint.run(call)
      if (isAudited) audit('ok')
      send(response, endpoint, result)
    } catch (error) {
      if (isAudited) audit('error')
      throw error
    }
  }

  const handle: RequestHandler = (request, response, path) => {
    serve(request, response, path)
      .catch((error: unknown) => {
        const { status, headers, ...body } = answerOf(error)
        if (status === 500) log.error({ err: error, path }, 'administration request failed')
        if (response.headersSent) return void response.destroy()
        sendJson(response, status, [Buffer.from(JSON.stringify(body))], { ...PRIVATE_HEADERS, ...headers })
      })
      .finally(() => discardBody(request))
  }

  return Object.fromEntries(routePaths(endpoints).map(path => [path, handle]))
}

/** Why a caller may not use an endpoint; undefined if it may. */
const refusalFor = ({ role, rejection }: AdminCaller, endpoint: AdminEndpoint | undefined): AdminError | undefined => {
  if (!endpoint || RANKS[role] >= RANKS[endpoint.access]) return undefined
  return role === 'none' && rejection ? rejection : NEEDS_OWNER
}

const methodNotAllowed = (endpoints: readonly AdminEndpoint[]): AdminError => {
  const methods = endpoints.map(({ method }) => method).join(', ')
  return new AdminError(405, `Method not allowed: use ${methods}`, undefined, { allow: methods })
}

const tooManyRequests = (waitMs: number): AdminError => {
  const seconds = Math.ceil(waitMs / 1000)
  return new AdminError(429, `Too many requests: try again in ${seconds} s`, undefined, {
    'retry-after': String(seconds),
  })
}

/** Aborted when the client leaves before the whole response was sent. */
const closedSignal = (response: ServerResponse): AbortSignal => {
  const abort = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) abort.abort()
  })
  return abort.signal
}

const readJson = async (
  request: IncomingMessage,
  { body: schema, maxBodyBytes = MAX_BODY_BYTES }: AdminEndpoint,
  checkBody: AdminRoutesOptions['checkBody'],
): Promise<Json> => {
  const bytes = await readBody(request, maxBodyBytes)
  const body = bytes.length === 0 ? Json.empty : parse(bytes)
  const wrong = schema && checkBody(schema, body.toValue())
  if (wrong !== undefined) throw new AdminError(400, `The body is not valid: ${wrong}`)
  return body
}

const parse = (bytes: Buffer): Json => {
  try {
    return Json.parse(bytes)
  } catch (error) {
    throw new AdminError(400, `The body is not valid JSON: ${(error as Error).message}`)
  }
}

const send = (response: ServerResponse, { method, path, isEmpty }: AdminEndpoint, result: unknown): void => {
  if (response.headersSent) return
  if (isEmpty) return void response.writeHead(204, PRIVATE_HEADERS).end()
  if (result === undefined) throw new Error(`${method} ${path} has no result`)
  const bytes = result instanceof Json ? result.toBytes() : Buffer.from(JSON.stringify(result))
  sendJson(response, 200, [bytes], PRIVATE_HEADERS)
}

type AdminAnswer = AdminErrorBody & { readonly status: number; readonly headers?: Readonly<Record<string, string>> }

const answerOf = (error: unknown): AdminAnswer => {
  if (error instanceof AdminError) {
    const { status, message, details, headers } = error
    return { status, headers, error: { message, ...(details && { details }) } }
  }
  if (error instanceof ConfigError) return { status: 422, error: { message: error.message } }
  if (error instanceof BodyTooLarge) return { status: 413, error: { message: error.message } }
  if (error instanceof BodyAborted) return { status: 400, error: { message: error.message } }
  return { status: 500, error: { message: 'Internal error; see the log of the gateway' } }
}
