import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller } from '../../protocol/exchange.ts'
import {
  checkParamHeaders,
  createParamHeaders,
  mirrorsParams,
  readParamHeaders,
  withoutParamHeaders,
} from '../../protocol/param-headers.ts'
import { isModern } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'

const ANNOTATION = Buffer.from('"x-mcp-header"')

const annotated = new WeakMap<Json, boolean>()

/** Whether arguments of a tool may have to be repeated in headers; each definition is searched once. */
export const isAnnotated = (item: Json): boolean => {
  const known = annotated.get(item)
  if (known !== undefined) return known
  const pieces: Buffer[] = []
  item.get('inputSchema')?.appendTo(pieces)
  const found = pieces.some(piece => piece.includes(ANNOTATION))
  annotated.set(item, found)
  return found
}

/** A tool as clients may see it, or the reason to hide it. */
export type UsableTool = { readonly item: Json } | { readonly reason: string }

/**
 * Hides a tool with invalid annotations, because clients must not call it over HTTP. The annotations of a stdio server have
 * no effect, and are removed.
 */
export const usableTool = (item: Json, isRemote: boolean): UsableTool => {
  const schema = isAnnotated(item) ? item.get('inputSchema') : undefined
  const found = schema && readParamHeaders(schema)
  if (!schema || found?.kind !== 'invalid') return { item }
  return isRemote ? { reason: found.reason } : { item: item.with('inputSchema', withoutParamHeaders(schema)) }
}

/** Compares the headers of a caller that must send them with its arguments, by the definition the caller sees. */
export const checkCallHeaders = (caller: Caller, shown: Json, args: Json): RpcError | undefined => {
  const schema = mirrorsParams(caller) && isAnnotated(shown) ? shown.get('inputSchema') : undefined
  const reason = schema && checkParamHeaders(schema, args, caller.headers)
  return reason === undefined ? undefined : rpcError('headerMismatch', reason)
}

/** The caller with the headers that belong to the arguments for the server, by the server's own definition. */
export const withCallHeaders = (caller: Caller, shown: Json, native: Json, args: Json): Caller => {
  if (!isModern(caller.revision) || !(isAnnotated(native) || isAnnotated(shown))) return caller
  const headers = new Map(caller.headers)
  for (const name of headersOf(shown)) headers.delete(name)
  for (const [name, value] of createParamHeaders(native.get('inputSchema') ?? Json.empty, args))
    headers.set(name, value)
  return { ...caller, headers }
}

const headersOf = (item: Json): readonly string[] => {
  const found = readParamHeaders(item.get('inputSchema') ?? Json.empty)
  return found.kind === 'valid' ? found.params.map(({ header }) => header) : []
}
