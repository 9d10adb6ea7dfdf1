import type { Json } from '../../wire/json/json.ts'

/** Keywords whose value is data, not schema. */
const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples', 'required', 'dependentRequired'])
/** Keywords whose members are named by the author. */
const MAPS: ReadonlySet<string> = new Set([
  'properties',
  '$defs',
  'definitions',
  'patternProperties',
  'dependentSchemas',
])

/**
 * Makes a tool's schema part of a larger document, at the given place: references that count from its own root are
 * written anew. Everything else stays as the tool wrote it.
 */
export const embedSchema = (schema: Json, place: string): Json => {
  if (schema.has('$id')) return schema // it is a document of its own, wherever it stands
  const anchors = new Map<string, string>()
  collectAnchors(schema, place, anchors)
  return rebase(schema, place, anchors).without('$schema')
}

const isResource = (schema: Json): boolean => schema.isObject && schema.has('$id')

/** The subschemas of a schema with the pointer that leads to each. */
const children = (schema: Json): [pointer: string, child: Json][] =>
  schema.entries().flatMap(([keyword, value]): [string, Json][] => {
    if (DATA.has(keyword)) return []
    const at = `/${escaped(keyword)}`
    if (MAPS.has(keyword)) return value.entries().map(([name, child]) => [`${at}/${escaped(name)}`, child])
    if (value.kind === 'array') return value.elements().map((child, i) => [`${at}/${i}`, child])
    return value.isObject ? [[at, value]] : []
  })

const escaped = (name: string): string =>
  encodeURI(name.replaceAll('~', '~0').replaceAll('/', '~1')).replaceAll('#', '%23')

const collectAnchors = (schema: Json, place: string, anchors: Map<string, string>): void => {
  const anchor = schema.get('$anchor')?.asString()
  if (anchor !== undefined) anchors.set(anchor, place)
  for (const [pointer, child] of children(schema))
    if (child.isObject && !isResource(child)) collectAnchors(child, place + pointer, anchors)
}

const rebase = (schema: Json, place: string, anchors: ReadonlyMap<string, string>): Json => {
  if (!schema.isObject || isResource(schema)) return schema
  const again = (child: Json): Json => rebase(child, place, anchors)
  let result = schema
  for (const [keyword, value] of schema.entries()) {
    if (keyword === '$ref') result = result.with(keyword, target(value, place, anchors))
    else if (DATA.has(keyword)) continue
    else if (MAPS.has(keyword)) result = result.with(keyword, mapMembers(value, again))
    else if (value.kind === 'array') result = result.with(keyword, value.map(again))
    else if (value.isObject) result = result.with(keyword, again(value))
  }
  return result.without('$anchor') // every reference to it has been written anew, and two tools may use one name
}

const mapMembers = (members: Json, convert: (member: Json) => Json): Json =>
  members.entries().reduce((result, [name, member]) => result.with(name, convert(member)), members)

const target = (value: Json, place: string, anchors: ReadonlyMap<string, string>): Json | string => {
  const text = value.asString()
  if (text === '#') return place
  if (text?.startsWith('#/')) return place + text.slice(1)
  return (text?.startsWith('#') ? anchors.get(text.slice(1)) : undefined) ?? value
}
