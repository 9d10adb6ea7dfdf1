import type { Admission, RequestInfo } from '../protocol/admission.ts'
import { type RpcError, rpcError } from '../protocol/errors.ts'
import { isModern, isRevision, NEWEST_LEGACY } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'

type Refusal = Admission & { readonly kind: 'out' }

const UNAUTHORIZED = -32001
const RATE_LIMITED = -32002
const INTERNAL = -32603
const CHALLENGE = 'Bearer realm="dragoman"'

/** The codes legacy clients know have another history with modern ones, or are closed to them. */
const codeFor = ({ headers }: RequestInfo, legacy: number): number => {
  const version = headers['mcp-protocol-version']
  if (typeof version !== 'string') return legacy
  return (isRevision(version) ? isModern(version) : version > NEWEST_LEGACY) ? INTERNAL : legacy
}

const refusal = (status: number, error: RpcError, headers: Readonly<Record<string, string>>): Refusal => ({
  kind: 'out',
  status,
  error,
  headers,
})

const unauthorized = (request: RequestInfo, message: string, challenge: string): Refusal =>
  refusal(401, { code: codeFor(request, UNAUTHORIZED), message }, { 'www-authenticate': challenge })

/** Nobody said who they are. */
export const noToken = (request: RequestInfo): Refusal =>
  unauthorized(request, 'Unauthorized: a token is needed; send it as "Authorization: Bearer <token>"', CHALLENGE)

/** The token is not, or no longer, one of ours. */
export const invalidToken = (request: RequestInfo, why: string): Refusal =>
  unauthorized(request, `Unauthorized: ${why}`, `${CHALLENGE}, error="invalid_token", error_description="${why}"`)

/** The token is good, but not here. */
export const otherWorkspace = (request: RequestInfo, workspace: string): Refusal => {
  // The name comes from the URL: anything may be in it.
  const scope = encodeURIComponent(workspace)
  return refusal(
    403,
    {
      code: codeFor(request, UNAUTHORIZED),
      message: `Forbidden: insufficient scope, the token does not open workspace ${JSON.stringify(workspace)}`,
    },
    { 'www-authenticate': `${CHALLENGE}, error="insufficient_scope", scope="${scope}"` },
  )
}

/** The token is good, but for a part of the gateway only. */
export const limitedToken = (request: RequestInfo): Refusal => {
  const message = 'Forbidden: insufficient scope, this needs a token for every workspace and without a policy'
  return refusal(
    403,
    { code: codeFor(request, UNAUTHORIZED), message },
    { 'www-authenticate': `${CHALLENGE}, error="insufficient_scope"` },
  )
}

/** There is nothing of that name, and whoever asks may know. */
export const noWorkspace = (workspace: string): Refusal => {
  const message = `There is no workspace ${JSON.stringify(workspace)}; GET / lists them`
  return refusal(404, rpcError('invalidRequest', message), {})
}

/** Too much at once; says when to come again. */
export const tooMany = (request: RequestInfo, retryAfterMs: number): Refusal =>
  limited(request, `Too Many Requests: try again in ${retryAfterMs} ms`, retryAfterMs)

/** Too many wrong tokens from one address. */
export const tooManyFailures = (request: RequestInfo, retryAfterMs: number): Refusal =>
  limited(
    request,
    `Too Many Requests: too many rejected tokens from this address; send a valid one, or try again in ${retryAfterMs} ms`,
    retryAfterMs,
  )

const limited = (request: RequestInfo, message: string, retryAfterMs: number): Refusal =>
  refusal(
    429,
    { code: codeFor(request, RATE_LIMITED), message, data: Json.of({ retryAfterMs }) },
    { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) },
  )
