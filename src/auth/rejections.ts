import type { Admission, RequestInfo } from '../protocol/admission.ts'
import { ERRORS, type RpcError, rpcError } from '../protocol/errors.ts'
import { isModern, isRevision, NEWEST_LEGACY } from '../protocol/revisions.ts'
import { lacksScopes } from '../protocol/scopes.ts'
import { Json } from '../wire/json/json.ts'
import { type ChallengeParameters, REALM } from './resource.ts'

/** The response to a request that is not admitted. */
export type AuthRejection = Admission & { readonly kind: 'out' }

const UNAUTHORIZED = -32001
const RATE_LIMITED = -32002
const RETRY_AFTER_S = '5'

/** Modern clients give the codes of legacy ones another meaning, or do not accept them. */
const codeFor = ({ headers }: RequestInfo, legacy: number): number => {
  const version = headers['mcp-protocol-version']
  if (typeof version !== 'string') return legacy
  return (isRevision(version) ? isModern(version) : version > NEWEST_LEGACY) ? ERRORS.internal.code : legacy
}

const reject = (status: number, error: RpcError, headers: Readonly<Record<string, string>>): AuthRejection => ({
  kind: 'out',
  status,
  error,
  headers,
})

const unauthorized = (request: RequestInfo, status: number, message: string, challenge: string): AuthRejection =>
  reject(status, { code: codeFor(request, UNAUTHORIZED), message }, { 'www-authenticate': challenge })

/** Writes the WWW-Authenticate header of a response to a request. */
export type Challenge = (request: RequestInfo, parameters?: ChallengeParameters) => string

export const missingToken = (request: RequestInfo, challenge: Challenge): AuthRejection => {
  const message = 'Unauthorized: a token is needed; send it as "Authorization: Bearer <token>"'
  return unauthorized(request, 401, message, challenge(request))
}

export const invalidToken = (request: RequestInfo, reason: string, challenge: Challenge): AuthRejection => {
  const header = challenge(request, { error: 'invalid_token', description: reason })
  return unauthorized(request, 401, `Unauthorized: ${reason}`, header)
}

/** An API token that does not open a workspace. */
export const wrongWorkspace = (request: RequestInfo, workspace: string): AuthRejection => {
  const message = `Forbidden: insufficient scope, the token does not open workspace ${JSON.stringify(workspace)}`
  const scope = encodeURIComponent(workspace) // it comes from the URL and may hold any character
  return unauthorized(request, 403, message, `${REALM}, error="insufficient_scope", scope="${scope}"`)
}

/** The token is valid for a part of the gateway only. */
export const restrictedToken = (request: RequestInfo): AuthRejection => {
  const message = 'Forbidden: insufficient scope, this needs a token for every workspace and without a policy'
  return unauthorized(request, 403, message, `${REALM}, error="insufficient_scope"`)
}

/** An OAuth token whose caller may not use a workspace. There is no challenge: no other token of the caller would help. */
export const forbidden = (request: RequestInfo, reason: string): AuthRejection =>
  reject(403, { code: codeFor(request, UNAUTHORIZED), message: `Forbidden: ${reason}` }, {})

/** An OAuth token that lacks scopes which any access needs. */
export const missingBaseScopes = (request: RequestInfo, missing: readonly string[], challenge: string): AuthRejection =>
  unauthorized(request, 403, lacksScopes(missing), challenge)

/** The token could not be checked: the client should keep it and try again. */
export const uncheckedToken = (request: RequestInfo, reason: string): AuthRejection =>
  reject(
    503,
    { code: codeFor(request, UNAUTHORIZED), message: `Service Unavailable: ${reason}` },
    { 'retry-after': RETRY_AFTER_S },
  )

export const unknownWorkspace = (workspace: string): AuthRejection => {
  const message = `There is no workspace ${JSON.stringify(workspace)}; GET / lists them`
  return reject(404, rpcError('invalidRequest', message), {})
}

export const tooManyRequests = (request: RequestInfo, retryAfterMs: number): AuthRejection =>
  rateLimited(request, `Too Many Requests: try again in ${retryAfterMs} ms`, retryAfterMs)

/** Too many invalid tokens from one address. */
export const tooManyFailures = (request: RequestInfo, retryAfterMs: number): AuthRejection =>
  rateLimited(
    request,
    `Too Many Requests: too many rejected tokens from this address; send a valid one, or try again in ${retryAfterMs} ms`,
    retryAfterMs,
  )

const rateLimited = (request: RequestInfo, message: string, retryAfterMs: number): AuthRejection =>
  reject(
    429,
    { code: codeFor(request, RATE_LIMITED), message, data: Json.of({ retryAfterMs }) },
    { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) },
  )
