import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { encodeHeaderValue } from '../../protocol/param-headers.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'

/** By capabilities: a legacy session has one such value for its whole life. Every call of it needs the `_meta`. */
const metaCache = new WeakMap<Json, { readonly caller: Caller; readonly meta: Json }>()

/** The params with the `_meta` that a modern server requires; unchanged if the client wrote it already. */
export const withEnvelope = (params: Json, caller: Caller): Json => {
  const meta = params.get('_meta')
  if (meta?.get(META.protocolVersion)?.asString() === MODERN) return params
  const own = metaOf(caller)
  if (!meta?.isObject) return params.with('_meta', own)
  return params.with(
    '_meta',
    own.entries().reduce((merged, [key, value]) => merged.with(key, value), meta),
  )
}

const metaOf = (caller: Caller): Json => {
  const known = metaCache.get(caller.capabilities)
  if (known && known.caller.info === caller.info && known.caller.logLevel === caller.logLevel) return known.meta
  const meta = Json.of({
    [META.protocolVersion]: MODERN,
    [META.clientInfo]: caller.info,
    [META.clientCapabilities]: modernCapabilities(caller.capabilities),
    [META.logLevel]: caller.logLevel,
  })
  metaCache.set(caller.capabilities, { caller, meta })
  return meta
}

/** 2026-07-28 has no roots.listChanged, and tasks are an extension there. */
const modernCapabilities = (capabilities: Json): Json => {
  const kept = capabilities.without('tasks')
  const roots = kept.get('roots')
  return roots?.has('listChanged') ? kept.with('roots', roots.without('listChanged')) : kept
}

/** The value of the Mcp-Method header; methods of extensions may have any name. */
export const mcpMethod = (method: string): string => (methodInfo(method) ? method : encodeHeaderValue(method))

/** The value of the Mcp-Name header; undefined for methods without one. */
export const mcpName = (method: string, params: Json): string | undefined => {
  const member = methodInfo(method)?.named
  const name = member && params.get(member)?.asString()
  return name === undefined ? undefined : encodeHeaderValue(name)
}
