import { ERRORS, type RpcError, rpcError } from '../protocol/errors.ts'
import { ENVELOPE, META, TASKS_EXTENSION } from '../protocol/meta.ts'
import { methodInfo } from '../protocol/methods.ts'
import { runsToolsAsTasks } from '../protocol/tasks.ts'
import { Json } from '../wire/json/json.ts'
import { isBlock, mapCapabilities, mapList } from './content.ts'
import type { RevisionDifference } from './difference.ts'
import { mapBlocks } from './sampling.ts'
import { withObjectOutput, withObjectSchemas } from './structured-output.ts'

/** 2025-11-25 against 2026-07-28: no envelope, no result types, no cache hints, structured output only as objects. */
export const difference: RevisionDifference = {
  up: { result: asModernResult, error: asModernError, question: withoutTask },
  down: {
    params: withoutEnvelope,
    result: asLegacyResult,
    notice: (_method, params) => withoutMeta(params, [META.subscriptionId]),
    error: asLegacyError,
    question: withObjectTools,
  },
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
  return methodInfo(method)?.asks ? bare.without('inputResponses', 'requestState') : bare
}

const COMPLETE = Json.of('complete')
const STALE = Json.of(0)
const PRIVATE = Json.of('private')

function asModernResult(method: string, result: Json): Json {
  let modern = result.get('resultType')?.isString('complete') ? result : result.with('resultType', COMPLETE)
  if (methodInfo(method)?.cacheable) {
    if (!modern.has('ttlMs')) modern = modern.with('ttlMs', STALE)
    if (!modern.has('cacheScope')) modern = modern.with('cacheScope', PRIVATE)
  }
  if (method === 'tools/list') return mapList(modern, 'tools', tool => tool.without('execution'))
  // A 2026-07-28 client rejects a tool result without content.
  if (method === 'tools/call') return modern.has('content') ? modern : modern.with('content', [])
  return mapCapabilities(method, modern, withTasksExtension)
}

/** What was a capability is an extension there. */
function withTasksExtension(capabilities: Json): Json {
  const rest = capabilities.without('tasks')
  if (!runsToolsAsTasks(capabilities)) return rest
  return rest.with('extensions', (rest.get('extensions') ?? Json.empty).with(TASKS_EXTENSION, {}))
}

function asLegacyResult(method: string, result: Json): Json {
  const bare = result.without('resultType', 'ttlMs', 'cacheScope')
  // The front makes the handshake from it, and needs the server's info.
  if (method === 'server/discover') return mapCapabilities(method, bare, withTasks)
  const own = withoutMeta(bare, [META.serverInfo, META.subscriptionId])
  if (method === 'tools/call') return withObjectOutput(own)
  return method === 'tools/list' ? mapList(own, 'tools', asLegacyTool) : own
}

/** The gateway runs every tool of a modern server as a task for a client that asks for one. */
const TASKS = Json.of({ cancel: {}, requests: { tools: { call: {} } } })
const EXECUTION = Json.of({ taskSupport: 'optional' })

function asLegacyTool(tool: Json): Json {
  const legacy = withObjectSchemas(tool)
  return !legacy.isObject || legacy.has('execution') ? legacy : legacy.with('execution', EXECUTION)
}

function withTasks(capabilities: Json): Json {
  const bare = withoutTasksExtension(capabilities)
  return bare.has('tools') && !bare.has('tasks') ? bare.with('tasks', TASKS) : bare
}

function withoutTasksExtension(capabilities: Json): Json {
  const extensions = capabilities.get('extensions')
  if (!extensions?.has(TASKS_EXTENSION)) return capabilities
  const rest = extensions.without(TASKS_EXTENSION)
  return rest.entries().length === 0 ? capabilities.without('extensions') : capabilities.with('extensions', rest)
}

/** Tools and their results have the same form in sampling as in calls. */
function withObjectTools(method: string, params: Json): Json {
  if (method !== 'sampling/createMessage') return params
  return mapBlocks(mapList(params, 'tools', withObjectSchemas), block =>
    isBlock(block, 'tool_result') ? withObjectOutput(block) : block,
  )
}

/** The id of a link stays, although this revision has none: clients on rmcp cannot read the question without it. */
function withoutTask(_method: string, params: Json): Json {
  return withoutMeta(params.without('task'), [META.relatedTask])
}

const { resourceNotFound, invalidParams, headerMismatch, missingCapability, unsupportedVersion } = ERRORS

/** Codes with a meaning in 2026-07-28, or forbidden there; a legacy server uses them for its own errors. */
const RESERVED: ReadonlySet<number> = new Set(
  [headerMismatch, missingCapability, unsupportedVersion, ERRORS.urlElicitationRequired].map(({ code }) => code),
)

/** Other codes of a server are forwarded unchanged, also those from the range that the specification reserves. */
function asModernError(_method: string, error: RpcError): RpcError {
  if (error.code === resourceNotFound.code) return { ...error, code: invalidParams.code }
  if (error.code === missingCapability.code && error.data?.get('requiredCapabilities')?.isObject) return error
  return RESERVED.has(error.code) ? internal(error) : error
}

const internal = ({ code, message, data }: RpcError): RpcError =>
  rpcError('internal', message, Json.of({ upstreamCode: code, data }))

function asLegacyError(method: string, error: RpcError, params: Json): RpcError {
  const isNotFound = method === 'resources/read' && error.code === invalidParams.code
  if (isNotFound && error.data?.get('uri')?.asString() === params.get('uri')?.asString())
    return { ...error, code: resourceNotFound.code }
  if (error.code === missingCapability.code) {
    const required = namesOf(error.data?.get('requiredCapabilities') ?? Json.empty).join(', ')
    const message = `The server needs a capability that this client does not have${required && ` (${required})`}: ${error.message}`
    return rpcError('internal', message, error.data)
  }
  // An error between the gateway and the server; the client caused none.
  return error.code === headerMismatch.code || error.code === unsupportedVersion.code ? internal(error) : error
}

/** The paths of the required capabilities: `elicitation.url`, `sampling`. */
const namesOf = (capabilities: Json): string[] =>
  capabilities.entries().flatMap(([name, inner]) => {
    const inside = namesOf(inner)
    return inside.length === 0 ? [name] : inside.map(rest => `${name}.${rest}`)
  })
