import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import {
  checkParamHeaders,
  mirrorsParams,
  paramHeadersOf,
  readParamHeaders,
  withoutParamHeaders,
} from '../../protocol/param-headers.ts'
import { isModern } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'

const ANNOTATION = 'x-mcp-header'
const BYTES = Buffer.from(`"${ANNOTATION}"`)

const known = new WeakMap<Json, boolean>()

/** Whether a tool's arguments may have to be repeated in headers; each definition is searched once. */
export const isAnnotated = (item: Json): boolean => {
  const before = known.get(item)
  if (before !== undefined) return before
  const pieces: Buffer[] = []
  item.get('inputSchema')?.appendTo(pieces)
  const found = pieces.some(piece => piece.includes(BYTES))
  known.set(item, found)
  return found
}

/** A tool as it may be shown, or why it may not. */
export type UsableTool = { readonly item: Json } | { readonly reason: string }

/**
 * Clients must not use a tool over HTTP whose annotations are broken, so it is not shown; toward a process they mean
 * nothing and are taken off.
 */
export const usableTool = (item: Json, isRemote: boolean): UsableTool => {
  const schema = isAnnotated(item) ? item.get('inputSchema') : undefined
  const found = schema && readParamHeaders(schema)
  if (!schema || found?.kind !== 'invalid') return { item }
  return isRemote ? { reason: found.reason } : { item: item.with('inputSchema', withoutParamHeaders(schema)) }
}

/** Compares the headers of a caller who must send them with the arguments, as the tool is shown to it. */
export const checkCallHeaders = (caller: Caller, shown: Json, args: Json): RpcError | undefined => {
  const schema = mirrorsParams(caller) && isAnnotated(shown) ? shown.get('inputSchema') : undefined
  const reason = schema && checkParamHeaders(schema, args, caller.headers)
  return reason === undefined ? undefined : rpcError('headerMismatch', reason)
}

/** The caller as the server shall see it: with the headers that belong to the arguments it gets. */
export const withCallHeaders = (caller: Caller, shown: Json, own: Json, args: Json): Caller => {
  if (!isModern(caller.revision) || !(isAnnotated(own) || isAnnotated(shown))) return caller
  const headers = new Map(caller.headers)
  for (const name of headersOf(shown)) headers.delete(name)
  for (const [name, value] of paramHeadersOf(own.get('inputSchema') ?? Json.empty, args)) headers.set(name, value)
  return { ...caller, headers }
}

const headersOf = (item: Json): readonly string[] => {
  const found = readParamHeaders(item.get('inputSchema') ?? Json.empty)
  return found.kind === 'valid' ? found.params.map(({ header }) => header) : []
}
