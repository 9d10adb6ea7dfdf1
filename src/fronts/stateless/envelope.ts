import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Frame, Question } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { isLogSeverity, isMethodOf, LOG_SEVERITIES, type LogSeverity, methodInfo } from '../../protocol/methods.ts'
import { decodeHeaderValue } from '../../protocol/param-headers.ts'
import { isModern, isRevision, type Revision, SERVED } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { SHUTTING_DOWN } from '../http/active-calls.ts'
import type { HttpRejection } from '../http/classify.ts'
import { findOversizedIdentity } from '../sessions/client-limits.ts'

const LISTEN = 'subscriptions/listen'
const DISCOVER = 'server/discover'

/** What a 2026-07-28 request says about its client in `params._meta`. */
interface Envelope {
  readonly revision: Revision
  readonly capabilities: Json
  readonly info: Json | undefined
  readonly logLevel: LogSeverity | undefined
  readonly affinity: string | undefined
}

type EnvelopeReading = { readonly envelope: Envelope } | { readonly rejection: HttpRejection }

const reject = (status: number, error: RpcError): EnvelopeReading => ({ rejection: { status, error } })

const rejectMismatch = (header: string, found: string | undefined, body: string): EnvelopeReading =>
  reject(
    400,
    rpcError(
      'headerMismatch',
      `Header mismatch: ${header} is ${found === undefined ? 'missing' : `'${found}'`}, the body says '${body}'`,
    ),
  )

/** Reads the envelope of a modern request and checks it against the headers, which a pipe does not have. */
export const readEnvelope = (method: string, params: Json, headers?: IncomingHttpHeaders): EnvelopeReading => {
  const meta = params.get('_meta')
  const revision = meta?.get(META.protocolVersion)?.asString() ?? ''
  const inHeader = headers && header(headers, 'mcp-protocol-version')
  if (headers && inHeader !== revision) return rejectMismatch('MCP-Protocol-Version', inHeader, revision)
  if (!isRevision(revision) || !isModern(revision)) return rejectVersion(revision)
  const capabilities = meta?.get(META.clientCapabilities)
  if (!capabilities?.isObject)
    return reject(400, rpcError('invalidParams', `params._meta lacks the object ${META.clientCapabilities}`))
  const logLevel = meta?.get(META.logLevel)?.asString()
  if (logLevel !== undefined && !isLogSeverity(logLevel))
    return reject(400, rpcError('invalidParams', `${META.logLevel} must be one of ${LOG_SEVERITIES.join(', ')}`))
  const mismatch = headers && checkNames(headers, method, params)
  if (mismatch) return mismatch
  if (!isMethodOf(method, revision))
    return reject(404, rpcError('methodNotFound', `Method not found: ${method} is not part of ${revision}`))
  const info = meta?.get(META.clientInfo)
  const affinity = meta?.get(META.affinity)?.asString()
  const tooLarge = findOversizedIdentity(capabilities, info, affinity)
  if (tooLarge !== undefined) return reject(400, rpcError('invalidParams', tooLarge))
  return { envelope: { revision, capabilities, info, logLevel, affinity } }
}

const checkNames = (headers: IncomingHttpHeaders, method: string, params: Json): EnvelopeReading | undefined => {
  const methodHeader = header(headers, 'mcp-method')
  const info = methodInfo(method)
  const isSame = info !== undefined && methodHeader === method // the methods that are known need no encoding
  if (!isSame && decode(methodHeader) !== method) return rejectMismatch('Mcp-Method', methodHeader, method)
  const member = info?.named
  if (!member) return undefined
  const target = params.get(member)?.asString()
  if (target === undefined) return reject(400, rpcError('invalidParams', `params.${member} must be a string`))
  const nameHeader = header(headers, 'mcp-name')
  return decode(nameHeader) === target ? undefined : rejectMismatch('Mcp-Name', nameHeader, target)
}

const decode = (value: string | undefined): string | undefined =>
  value === undefined ? undefined : decodeHeaderValue(value)

const rejectVersion = (requested: string): EnvelopeReading =>
  reject(
    400,
    rpcError(
      'unsupportedVersion',
      `Unsupported protocol version '${requested}'; use one of ${SERVED.join(', ')}`,
      Json.of({ supported: SERVED, requested }),
    ),
  )

const header = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name]
  return typeof value === 'string' ? value.trim() : undefined
}

const NO_HEADERS: ReadonlyMap<string, string> = new Map()
const PARAM = 'mcp-param-'
const TRACE: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'baggage'])

/** The headers that travel with an exchange: mirrored parameters and trace context. */
export const carriedHeaders = (
  request: Pick<IncomingMessage, 'headers' | 'rawHeaders'>,
): ReadonlyMap<string, string> => {
  const { rawHeaders } = request // flat: name, value, name, value; to go through `headers` takes five times as long
  let carried: Map<string, string> | undefined
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = carriedName(rawHeaders[at] as string)
    const value = name === undefined ? undefined : request.headers[name]
    if (name === undefined || typeof value !== 'string') continue
    carried ??= new Map()
    carried.set(name, value)
  }
  return carried ?? NO_HEADERS
}

/** The name in lower case, if a header of that name is carried. */
const carriedName = (name: string): string | undefined => {
  const first = name.charCodeAt(0) | 0x20
  if (first !== 0x6d && first !== 0x74 && first !== 0x62) return undefined // m, t, b
  if (first === 0x6d && (name.charCodeAt(4) | 0x20) !== 0x70) return undefined // of mcp- headers, those with a p after that
  const lower = name.toLowerCase()
  return lower.startsWith(PARAM) || TRACE.has(lower) ? lower : undefined
}

/**
 * Adds what 2026-07-28 requires of a result and the server left out: clients reject a result without its type and a
 * list without cache hints. Only the front knows the revisions served and the id of a subscription.
 */
export const modernResult = (method: string, result: Json, id: Json): Json => {
  const typed = result.has('resultType') ? result : result.with('resultType', 'complete')
  if (method === LISTEN) return withSubscriptionId(typed, id)
  if (!methodInfo(method)?.cacheable || typed.get('resultType')?.asString() !== 'complete') return typed
  const timed = typed.has('ttlMs') ? typed : typed.with('ttlMs', 0)
  const scoped = timed.has('cacheScope') ? timed : timed.with('cacheScope', 'private')
  return method === DISCOVER ? scoped.with('supportedVersions', SERVED) : scoped
}

/** The params of a notification; on the stream of `subscriptions/listen` they carry the id of that request. */
export const modernParams = (method: string, params: Json, id: Json): Json =>
  method === LISTEN ? withSubscriptionId(params, id) : params

const withSubscriptionId = (payload: Json, id: Json): Json => {
  const meta = payload.get('_meta')
  return payload.with('_meta', (meta?.isObject ? meta : Json.empty).with(META.subscriptionId, id))
}

/** Modern clients are asked through results, never with a request. */
export const rejectQuestion = ({ answer }: Question): void =>
  answer({ kind: 'error', error: rpcError('methodNotFound', 'This client takes no requests') })

/** The last frame of a request when the gateway shuts down: a subscription completes, a call fails. */
export const shutdownFrame = (method: string): Frame =>
  method === LISTEN
    ? { kind: 'result', result: Json.of({ resultType: 'complete' }) }
    : { kind: 'failure', error: SHUTTING_DOWN }

/** True for the request that stays open until its client or the gateway ends it. */
export const isListen = (method: string): boolean => method === LISTEN
