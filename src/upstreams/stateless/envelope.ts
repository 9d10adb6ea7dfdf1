import type { Caller } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { encodeHeaderValue } from '../../protocol/param-headers.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'

/** By log level, of one client's capabilities and info. */
type Metas = Map<string | undefined, Json>

/** By capabilities and info, which a legacy session keeps for its whole life: every call of it needs the `_meta`. */
const metaCache = new WeakMap<Json, WeakMap<Json, Metas>>()
const MOST_LEVELS = 16
const NO_INFO = Json.of({})

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
  const known = metasOf(caller.capabilities, caller.info ?? NO_INFO)
  const { logLevel } = caller
  const meta = known.get(logLevel)
  if (meta) return meta
  const made = Json.of({
    [META.protocolVersion]: MODERN,
    [META.clientInfo]: caller.info,
    [META.clientCapabilities]: modernCapabilities(caller.capabilities),
    [META.logLevel]: logLevel,
  })
  if (known.size >= MOST_LEVELS) known.clear()
  known.set(logLevel, made)
  return made
}

const metasOf = (capabilities: Json, info: Json): Metas => {
  const byInfo = metaCache.get(capabilities) ?? new WeakMap<Json, Metas>()
  const metas = byInfo.get(info) ?? new Map<string | undefined, Json>()
  if (metas.size > 0) return metas
  metaCache.set(capabilities, byInfo.set(info, metas))
  return metas
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
