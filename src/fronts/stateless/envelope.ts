import type { IncomingHttpHeaders } from 'node:http'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import { META } from '../../protocol/meta.ts'
import { isKnownTo, isLevel, LEVELS, type Level, methodRow } from '../../protocol/methods.ts'
import { decodeHeaderValue } from '../../protocol/param-headers.ts'
import { isModern, isRevision, type Revision, SERVED } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { sizeFault } from '../sessions/client-limits.ts'

/** What a modern request says of itself. */
export interface Envelope {
  readonly revision: Revision
  readonly capabilities: Json
  readonly info: Json | undefined
  readonly logLevel: Level | undefined
  readonly affinity: string | undefined
}

interface Refusal {
  readonly status: number
  readonly error: RpcError
}

type Reading = { readonly envelope: Envelope } | { readonly refusal: Refusal }

const refuse = (status: number, error: RpcError): Reading => ({ refusal: { status, error } })

const mismatch = (header: string, found: string | undefined, body: string): Reading =>
  refuse(
    400,
    rpcError(
      'headerMismatch',
      `Header mismatch: ${header} is ${found === undefined ? 'missing' : `'${found}'`}, the body says '${body}'`,
    ),
  )

/** Checks a modern request against its headers and lifts the envelope out of it. */
export const readEnvelope = (headers: IncomingHttpHeaders, method: string, params: Json): Reading => {
  const claim = claimOf(params)
  const version = header(headers, 'mcp-protocol-version')
  if (version !== claim) return mismatch('MCP-Protocol-Version', version, claim)
  return liftEnvelope(method, params, () => checkNames(headers, method, params))
}

/** Lifts the envelope out of a modern request that has no headers, or whose headers `check` looks at. */
export const liftEnvelope = (
  method: string,
  params: Json,
  check: () => Reading | undefined = () => undefined,
): Reading => {
  const meta = params.get('_meta')
  const claim = claimOf(params)
  if (!isRevision(claim) || !isModern(claim)) return unsupported(claim)
  const capabilities = meta?.get(META.clientCapabilities)
  if (!capabilities?.isObject)
    return refuse(400, rpcError('invalidParams', `params._meta lacks the object ${META.clientCapabilities}`))
  const level = meta?.get(META.logLevel)?.asString()
  if (level !== undefined && !isLevel(level))
    return refuse(400, rpcError('invalidParams', `${META.logLevel} must be one of ${LEVELS.join(', ')}`))
  const wrong = check()
  if (wrong) return wrong
  if (!isKnownTo(method, claim))
    return refuse(404, rpcError('methodNotFound', `Method not found: ${method} is not part of ${claim}`))
  const info = meta?.get(META.clientInfo)
  const affinity = meta?.get(META.affinity)?.asString()
  const tooLarge = sizeFault(capabilities, info, affinity)
  if (tooLarge !== undefined) return refuse(400, rpcError('invalidParams', tooLarge))
  return { envelope: { revision: claim, capabilities, info, logLevel: level, affinity } }
}

const claimOf = (params: Json): string => params.get('_meta')?.get(META.protocolVersion)?.asString() ?? ''

const checkNames = (headers: IncomingHttpHeaders, method: string, params: Json): Reading | undefined => {
  const named = header(headers, 'mcp-method')
  if (named !== method && decoded(named) !== method) return mismatch('Mcp-Method', named, method)
  const member = methodRow(method)?.named
  if (!member) return undefined
  const target = params.get(member)?.asString()
  if (target === undefined) return refuse(400, rpcError('invalidParams', `params.${member} must be a string`))
  const name = header(headers, 'mcp-name')
  return decoded(name) === target ? undefined : mismatch('Mcp-Name', name, target)
}

const decoded = (value: string | undefined): string | undefined =>
  value === undefined ? undefined : decodeHeaderValue(value)

const unsupported = (requested: string): Reading =>
  refuse(
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

const NONE: ReadonlyMap<string, string> = new Map()
const CARRIED = /^(mcp-param-.*|traceparent|tracestate|baggage)$/

/** The headers an exchange takes along: mirrored parameters and trace context. */
export const carriedHeaders = (headers: IncomingHttpHeaders): ReadonlyMap<string, string> => {
  let carried: Map<string, string> | undefined
  for (const name in headers) {
    const first = name.charCodeAt(0)
    if (first !== 0x6d && first !== 0x74 && first !== 0x62) continue // m, t, b
    const value = headers[name]
    if (typeof value !== 'string' || !CARRIED.test(name)) continue
    carried ??= new Map()
    carried.set(name, value)
  }
  return carried ?? NONE
}
