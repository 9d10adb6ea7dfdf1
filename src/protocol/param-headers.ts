import { isUtf8 } from 'node:buffer'
import type { Json, JsonKind } from '../wire/json/json.ts'
import { ambiguityError } from '../wire/json-rpc.ts'
import type { Caller } from './exchange.ts'
import { mapSubschemas, subschemasOf } from './json-schema.ts'
import { isModern } from './revisions.ts'

/** One argument that a modern HTTP client repeats in a header, found by `x-mcp-header` in a tool's inputSchema. */
export interface ParamHeader {
  readonly path: readonly string[] // the argument, through `properties` only
  readonly header: string // lower-case, with its prefix: mcp-param-region
}

/** The mirrored arguments of a schema, or why clients must reject the tool. */
export type ParamHeaders =
  | { readonly kind: 'valid'; readonly params: readonly ParamHeader[] }
  | { readonly kind: 'invalid'; readonly reason: string }

const ANNOTATION = 'x-mcp-header'
const PREFIX = 'mcp-param-'
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const PRIMITIVES: readonly string[] = ['string', 'integer', 'boolean']

// Every call of an annotated tool asks for it, and a schema of six properties takes 14 µs to search.
const known = new WeakMap<Json, ParamHeaders>()

/** Reads the annotations of an inputSchema; cached by schema value. */
export const readParamHeaders = (schema: Json): ParamHeaders => {
  const cached = known.get(schema)
  if (cached) return cached
  const found = collect(schema)
  known.set(schema, found)
  return found
}

const collect = (schema: Json): ParamHeaders => {
  const params: ParamHeader[] = []
  const taken = new Set<string>()
  for (const { node, path } of annotated(schema, [])) {
    const reason =
      annotationError(node, path) ?? (taken.has(headerOf(node)) ? `${label(node)} is used twice` : undefined)
    if (reason || !path) return { kind: 'invalid', reason: reason ?? '' }
    taken.add(headerOf(node))
    params.push({ path, header: headerOf(node) })
  }
  return { kind: 'valid', params }
}

interface Annotated {
  readonly node: Json
  readonly path: readonly string[] | undefined // undefined: not reachable through `properties` alone
}

/** Every subschema that carries the annotation, wherever it is. */
const annotated = (node: Json, path: readonly string[] | undefined): Annotated[] => {
  const found: Annotated[] = node.has(ANNOTATION) ? [{ node, path: path?.length ? path : undefined }] : []
  for (const { keyword, name, schema } of subschemasOf(node))
    found.push(
      ...annotated(schema, keyword === 'properties' && path && name !== undefined ? [...path, name] : undefined),
    )
  return found
}

/** The schema without its annotations. */
export const withoutParamHeaders = (schema: Json): Json =>
  mapSubschemas(schema.isObject ? schema.without(ANNOTATION) : schema, withoutParamHeaders)

const label = (node: Json): string => `${ANNOTATION} ${node.get(ANNOTATION)}`
const headerOf = (node: Json): string => PREFIX + (node.get(ANNOTATION)?.asString() ?? '').toLowerCase()

const annotationError = (node: Json, path: readonly string[] | undefined): string | undefined => {
  const name = node.get(ANNOTATION)?.asString()
  if (name === undefined || !TOKEN.test(name)) return `${label(node)} is not an HTTP field name`
  if (!path) return `${label(node)} is not on a property reachable through "properties" alone`
  if (!isPrimitive(node.get('type'))) return `${label(node)} is on a property that is no string, integer or boolean`
  return undefined
}

/** A nullable primitive counts: the specification speaks of mirrored parameters that are null. */
const isPrimitive = (type: Json | undefined): boolean => {
  const names = type?.kind === 'array' ? type.elements().map(name => name.asString()) : [type?.asString()]
  const others = names.filter(name => name !== 'null')
  return others.length === 1 && PRIMITIVES.includes(others[0] ?? '')
}

const OPEN = '=?base64?'
const CLOSE = '?='
const PLAIN = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const isWrapped = (text: string): boolean =>
  text.length >= OPEN.length + CLOSE.length && text.startsWith(OPEN) && text.endsWith(CLOSE)

/** A value as Mcp-Name and Mcp-Param-* carry it: plain where that is safe, else base64 in its sentinel. */
export const encodeHeaderValue = (text: string): string =>
  PLAIN.test(text) && !isWrapped(text) ? text : `${OPEN}${Buffer.from(text).toString('base64')}${CLOSE}`

/** The value a header stands for; undefined if it holds characters or an encoding that it must not. */
export const decodeHeaderValue = (header: string): string | undefined => {
  if (!PLAIN.test(header)) return undefined
  if (!isWrapped(header)) return header
  const encoded = header.slice(OPEN.length, -CLOSE.length)
  if (!BASE64.test(encoded)) return undefined
  const bytes = Buffer.from(encoded, 'base64')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

/**
 * True for callers that must repeat annotated arguments in headers: modern ones without a session, as the stateless
 * HTTP front describes its clients. They are rejected even if they send no such header, because a proxy that routes by
 * headers would see something else than the body says. Older revisions, and so REST calls, do not have the rule.
 */
export const mirrorsParams = (caller: Caller): boolean => isModern(caller.revision) && caller.session === undefined

/** The Mcp-Param-* headers a modern HTTP client would send with these arguments. */
export const createParamHeaders = (schema: Json, args: Json): [name: string, value: string][] => {
  const found = readParamHeaders(schema)
  if (found.kind === 'invalid') return []
  return found.params.flatMap(({ path, header }) => {
    const value = args.at(...path)
    return value && MIRRORED.has(value.kind) ? [[header, encodeHeaderValue(value.asString() ?? value.toString())]] : []
  })
}

/** Compares Mcp-Param-* headers (lower-case names) with the arguments; the reason if they disagree. */
export const checkParamHeaders = (
  schema: Json,
  args: Json,
  headers: ReadonlyMap<string, string>,
): string | undefined => {
  const found = readParamHeaders(schema)
  if (found.kind === 'invalid') return undefined
  for (const { path, header } of found.params) {
    const reason = ambiguityAlong(args, path) ?? compare(header, args.at(...path), headers.get(header))
    if (reason) return reason
  }
  return undefined
}

/** A server that reads a lookalike member instead would see another value than the header says. */
const ambiguityAlong = (args: Json, path: readonly string[]): string | undefined => {
  for (const [i, key] of path.entries()) {
    const ambiguous = args.at(...path.slice(0, i))?.findAmbiguous([key])
    if (ambiguous) return `Header mismatch: ${ambiguityError(ambiguous)}`
  }
  return undefined
}

const compare = (name: string, value: Json | undefined, header: string | undefined): string | undefined => {
  const mirrored = value !== undefined && MIRRORED.has(value.kind)
  if (header === undefined)
    return mirrored ? `Header mismatch: ${name} is missing, the body has ${brief(value)}` : undefined
  if (!mirrored) return `Header mismatch: ${name} is sent, the body has no such argument`
  const decoded = decodeHeaderValue(header)
  if (decoded === undefined) return `Header mismatch: ${name} is not a valid header value`
  return isSame(value, decoded) ? undefined : `Header mismatch: ${name} does not match the body's ${brief(value)}`
}

/** null is never mirrored; an object or a list in place of a primitive is rejected by the check of arguments. */
const MIRRORED: ReadonlySet<JsonKind> = new Set<JsonKind>(['string', 'number', 'boolean'])

const brief = (value: Json): string => {
  const text = value.toString()
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

/** Numbers are compared by value, as long as a double can tell them apart. */
const isSame = (value: Json, text: string): boolean => {
  if (value.kind === 'string') return value.asString() === text
  if (value.toString() === text) return true
  const number = value.asNumber()
  return (
    number !== undefined && Math.abs(number) <= Number.MAX_SAFE_INTEGER && NUMBER.test(text) && Number(text) === number
  )
}
