import { type RpcError, rpcError } from '../protocol/errors.ts'
import { ENVELOPE, META, TASKS_EXTENSION } from '../protocol/meta.ts'
import { methodRow } from '../protocol/methods.ts'
import { Json } from '../wire/json.ts'
import type { Difference } from './difference.ts'

/** 2025-11-25 against 2026-07-28: no envelope, no result types, no cache hints, another handshake. */
export const difference: Difference = {
  params: { down: withoutEnvelope },
  result: { up: asModernResult, down: asLegacyResult },
  notice: { down: (_method, params) => withoutMeta(params, [META.subscriptionId]) },
  error: { up: asModernError, down: asLegacyError },
  question: { up: (_method, params) => withoutMeta(params.without('elicitationId', 'task'), [META.relatedTask]) },
}

/** Removes `_meta` keys, and `_meta` itself when nothing is left in it. */
function withoutMeta(payload: Json, keys: readonly string[]): Json {
  const meta = payload.get('_meta')
  if (!meta) return payload
  const rest = meta.without(...keys)
  if (rest === meta) return payload
  return rest.entries().length === 0 ? payload.without('_meta') : payload.with('_meta', rest)
}

function withoutEnvelope(method: string, params: Json): Json {
  const bare = withoutMeta(params, ENVELOPE)
  // On any other method these two are ordinary parameters of an extension.
  return methodRow(method)?.asks ? bare.without('inputResponses', 'requestState') : bare
}

function asModernResult(method: string, result: Json): Json {
  let modern = result.with('resultType', 'complete')
  if (methodRow(method)?.cacheable) {
    if (!modern.has('ttlMs')) modern = modern.with('ttlMs', 0)
    if (!modern.has('cacheScope')) modern = modern.with('cacheScope', 'private')
  }
  if (method === 'tools/list') return withTools(modern, tool => tool.without('execution'))
  // A 2026-07-28 client refuses a tool result without content.
  return method === 'tools/call' && !modern.has('content') ? modern.with('content', []) : modern
}

function asLegacyResult(method: string, result: Json): Json {
  const bare = result.without('resultType', 'ttlMs', 'cacheScope')
  // The handshake is read by the front, which needs to know who the server is.
  if (method === 'server/discover') return withoutTasks(bare)
  return withoutMeta(bare, [META.serverInfo, META.subscriptionId])
}

function withoutTasks(discovered: Json): Json {
  const capabilities = discovered.get('capabilities')
  const extensions = capabilities?.get('extensions')
  if (!capabilities || !extensions?.has(TASKS_EXTENSION)) return discovered
  const rest = extensions.without(TASKS_EXTENSION)
  return discovered.with(
    'capabilities',
    rest.entries().length === 0 ? capabilities.without('extensions') : capabilities.with('extensions', rest),
  )
}

function withTools(result: Json, convert: (tool: Json) => Json): Json {
  const tools = result.get('tools')
  return tools ? result.with('tools', tools.map(convert)) : result
}

const RESOURCE_NOT_FOUND = -32002

function asModernError(_method: string, error: RpcError): RpcError {
  if (error.code === RESOURCE_NOT_FOUND) return { ...error, code: -32602 }
  // The range is reserved for the specification now; a private meaning must not leak into it.
  if (error.code <= -32020 && error.code >= -32099)
    return { code: -32603, message: error.message, data: Json.of({ upstreamCode: error.code, data: error.data }) }
  return error
}

function asLegacyError(method: string, error: RpcError, params: Json): RpcError {
  const isNotFound = method === 'resources/read' && error.code === -32602
  if (isNotFound && error.data?.get('uri')?.asString() === params.get('uri')?.asString())
    return { ...error, code: RESOURCE_NOT_FOUND }
  if (error.code === -32021)
    return rpcError('internal', `The server needs a capability this client has not: ${error.message}`, error.data)
  return error
}
