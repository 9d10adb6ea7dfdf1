import type { Json } from '../../../wire/json/json.ts'
import type { ParameterStyle, ValueStyle } from '../plan.ts'

// Writes arguments as OpenAPI's styles say (3.1, 4.8.12.6): each value is the text it has in the call, so that large numbers stay
// exact. Undefined members and null are left out.

const RESERVED = /%(3A|2F|3F|23|5B|5D|40|21|24|26|27|28|29|2A|2B|2C|3B|3D)/gi

/** Percent-encodes everything but letters, digits and `-._~`; with `allowReserved`, also the reserved characters stay. */
export const percentEncode = (text: string, allowReserved = false): string => {
  const encoded = encodeURIComponent(Buffer.from(text).toString()).replace(
    /[!'()*]/g,
    character => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
  return allowReserved ? encoded.replace(RESERVED, found => decodeURIComponent(found)) : encoded
}

/** A value as text: a string without quotes, everything else as JSON. */
export const plainText = (value: Json): string => value.asString() ?? value.toString()

const isAbsent = (value: Json): boolean => value.kind === 'null'

const DELIMITERS: Readonly<Partial<Record<ParameterStyle, string>>> = {
  spaceDelimited: '%20',
  pipeDelimited: '%7C',
  tabDelimited: '%09',
}

/** The pairs `name=value` of a query or a form, encoded. */
export const writeQuery = (name: string, value: Json, options: ValueStyle): string[] => {
  const { style, explode, allowReserved, isJson } = options
  const encode = (text: string): string => percentEncode(text, allowReserved)
  const pair = (key: string, text: string): string => `${percentEncode(key)}=${text}`
  if (isAbsent(value)) return []
  if (isJson) return [pair(name, encode(value.toString()))]
  if (style === 'deepObject') return writeDeep(name, value, encode)
  const delimiter = DELIMITERS[style] ?? ','
  if (value.kind === 'array') {
    const items = value.elements().filter(item => !isAbsent(item))
    const texts = items.map(item => encode(plainText(item)))
    if (explode) return texts.map(text => pair(name, text))
    return texts.length > 0 ? [pair(name, texts.join(delimiter))] : []
  }
  if (!value.isObject) return [pair(name, encode(plainText(value)))]
  const members = presentMembers(value)
  if (explode) return members.map(([key, text]) => pair(key, encode(text)))
  const parts = members.flatMap(([key, text]) => [encode(key), encode(text)])
  return parts.length > 0 ? [pair(name, parts.join(delimiter))] : []
}

/** `name[key][0]=value`, at any depth. */
const writeDeep = (name: string, value: Json, encode: (text: string) => string): string[] => {
  if (isAbsent(value)) return []
  if (value.kind === 'array') return value.elements().flatMap((item, at) => writeDeep(`${name}[${at}]`, item, encode))
  if (!value.isObject) return [`${percentEncode(name)}=${encode(plainText(value))}`]
  return value.entries().flatMap(([key, member]) => writeDeep(`${name}[${key}]`, member, encode))
}

const presentMembers = (value: Json): [string, string][] =>
  value.entries().flatMap(([key, member]) => (isAbsent(member) ? [] : [[key, plainText(member)]]))

/** The text of a path parameter, encoded. */
export const writePathValue = (name: string, value: Json, { style, explode, isJson }: ValueStyle): string => {
  const encode = (text: string): string => percentEncode(text)
  const prefix = style === 'label' ? '.' : style === 'matrix' ? ';' : ''
  const named = (text: string): string => (style === 'matrix' ? `${encode(name)}=${text}` : text)
  const separator = explode && prefix !== '' ? prefix : ','
  if (isJson) return prefix + named(encode(value.toString()))
  if (value.kind === 'array') {
    const texts = value.elements().map(item => encode(plainText(item)))
    return prefix + (explode ? texts.map(named).join(separator) : named(texts.join(',')))
  }
  if (!value.isObject) return prefix + named(encode(plainText(value)))
  const members = presentMembers(value).map(([key, text]) => [encode(key), encode(text)] as const)
  if (explode) return prefix + members.map(([key, text]) => `${key}=${text}`).join(separator)
  return prefix + named(members.flat().join(','))
}

/** The text of a header, which is not encoded. */
export const writeHeaderValue = (value: Json, { explode, isJson }: ValueStyle): string => {
  if (isJson) return value.toString()
  if (value.kind === 'array') return value.elements().map(plainText).join(',')
  if (!value.isObject) return plainText(value)
  const members = presentMembers(value)
  return members.map(([key, text]) => (explode ? `${key}=${text}` : `${key},${text}`)).join(',')
}
