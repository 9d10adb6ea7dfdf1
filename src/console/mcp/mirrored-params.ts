import { ExactNumber } from '../exact-json.ts'
import { isObject, type JsonObject } from './messages.ts'

const ANNOTATION = 'x-mcp-header'
const OPEN = '=?base64?'
const CLOSE = '?='
const PLAIN = /^(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?$/
const DEEPEST = 32

/** A value as Mcp-Name and Mcp-Param-* carry it: plain where that is safe, else base64 in its sentinel. */
export const encodeHeaderValue = (text: string): string => {
  const isWrapped = text.startsWith(OPEN) && text.endsWith(CLOSE)
  if (PLAIN.test(text) && !isWrapped) return text
  const bytes = new TextEncoder().encode(text)
  return `${OPEN}${btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(''))}${CLOSE}`
}

/** The Mcp-Param-* headers of a modern call: the arguments whose properties are annotated in the tool's schema. */
export const mirroredParams = (schema: unknown, args: unknown): Record<string, string> =>
  Object.fromEntries(collect(schema, args, 0))

const collect = (schema: unknown, args: unknown, depth: number): [string, string][] => {
  if (!isObject(schema) || !isObject(args) || !isObject(schema.properties) || depth > DEEPEST) return []
  return Object.entries(schema.properties).flatMap(([name, property]): [string, string][] => {
    const value = Object.hasOwn(args, name) ? args[name] : undefined
    return [...mirror(property, value), ...collect(property, value, depth + 1)]
  })
}

const mirror = (property: unknown, value: unknown): [string, string][] => {
  const header = isObject(property) ? (property as JsonObject)[ANNOTATION] : undefined
  if (typeof header !== 'string' || !/^[\w!#$%&'*+.^`|~-]+$/.test(header)) return []
  const isMirrored = ['string', 'number', 'boolean'].includes(typeof value) || value instanceof ExactNumber
  return isMirrored ? [[`mcp-param-${header.toLowerCase()}`, encodeHeaderValue(String(value))]] : []
}
