import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { methodRow } from '../../protocol/methods.ts'
import { encodeHeaderValue } from '../../protocol/param-headers.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'

interface Stamp {
  readonly caller: Caller
  readonly meta: Json
}

// A legacy session says once who it is, and its capabilities are one value for its whole life.
const stamps = new WeakMap<Json, Stamp>()

/** The params with the envelope a modern server wants; untouched where the client wrote it already. */
export const withEnvelope = (params: Json, caller: Caller): Json => {
  const meta = params.get('_meta')
  if (meta?.get(META.protocolVersion)?.asString() === MODERN) return params
  const stamp = stampOf(caller)
  if (!meta?.isObject) return params.with('_meta', stamp)
  return params.with(
    '_meta',
    stamp.entries().reduce((stamped, [key, value]) => stamped.with(key, value), meta),
  )
}

const stampOf = (caller: Caller): Json => {
  const known = stamps.get(caller.capabilities)
  if (known && known.caller.info === caller.info && known.caller.logLevel === caller.logLevel) return known.meta
  const meta = Json.of({
    [META.protocolVersion]: MODERN,
    [META.clientInfo]: caller.info,
    [META.clientCapabilities]: modernCapabilities(caller.capabilities),
    [META.logLevel]: caller.logLevel,
  })
  stamps.set(caller.capabilities, { caller, meta })
  return meta
}

/** 2026-07-28 has no roots.listChanged, and tasks are an extension there. */
const modernCapabilities = (capabilities: Json): Json => {
  const kept = capabilities.without('tasks')
  const roots = kept.get('roots')
  return roots?.has('listChanged') ? kept.with('roots', roots.without('listChanged')) : kept
}

/** What Mcp-Method says about a request: methods of extensions may have any name. */
export const mcpMethod = (method: string): string => (methodRow(method) ? method : encodeHeaderValue(method))

/** What Mcp-Name says about a request; undefined for methods that have none. */
export const mcpName = (method: string, params: Json): string | undefined => {
  const member = methodRow(method)?.named ?? (method.startsWith('tasks/') ? 'taskId' : undefined)
  const name = member && params.get(member)?.asString()
  return name === undefined ? undefined : encodeHeaderValue(name)
}
