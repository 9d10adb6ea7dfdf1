import type { Json } from '../wire/json/json.ts'
import { mapMembers } from '../wire/json/map-members.ts'

/** Keywords whose value is data: a member called `$ref` in it is no reference. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set([
  'const',
  'enum',
  'default',
  'examples',
  'example', // OpenAPI
  'required',
  'dependentRequired',
  '$vocabulary',
])

/** Keywords whose members are schemas under names that the author chose; `dependencies` may hold lists of names too. */
const MAP_KEYWORDS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
  'dependencies',
  '$defs',
  'definitions',
])

// Every other keyword, unknown ones included, holds a schema if its value is an object, and a list of schemas if it is
// an array: `not`, `allOf`, `prefixItems`, and `items`, which draft 7 allows to be either. References lead into unknown
// keywords as well (`#/components/schemas/x`), so these are not skipped.

/** A schema directly inside another one. */
export interface Subschema {
  readonly keyword: string
  readonly name: string | undefined // its name in a map, or its index in a list
  readonly schema: Json
}

/** The schemas directly inside a schema. `true` and `false` contain nothing and are left out. */
export const subschemasOf = (schema: Json): Subschema[] =>
  schema
    .entries()
    .flatMap(([keyword, value]): Subschema[] => {
      if (DATA_KEYWORDS.has(keyword)) return []
      if (MAP_KEYWORDS.has(keyword)) return value.entries().map(([name, child]) => ({ keyword, name, schema: child }))
      if (value.kind === 'array') return value.elements().map((child, i) => ({ keyword, name: `${i}`, schema: child }))
      return [{ keyword, name: undefined, schema: value }]
    })
    .filter(subschema => subschema.schema.isObject)

/** The schema with every schema directly inside it converted; the same value if none changed. */
export const mapSubschemas = (schema: Json, convert: (subschema: Json) => Json): Json => {
  const convertSchema = (value: Json): Json => (value.isObject ? convert(value) : value)
  return mapMembers(schema, (value, keyword) => {
    if (DATA_KEYWORDS.has(keyword)) return value
    if (MAP_KEYWORDS.has(keyword)) return mapMembers(value, convertSchema)
    return value.kind === 'array' ? value.map(convertSchema) : convertSchema(value)
  })
}

/** True for a schema with its own base URI: references inside it count from there. Draft 7 writes anchors as `$id: "#name"`. */
export const isSchemaResource = (schema: Json): boolean => {
  const id = schema.get('$id')?.asString()
  return id !== undefined && id !== '' && !id.startsWith('#')
}

const REFERENCES = ['$ref', '$dynamicRef']

/**
 * Rewrites the references of a schema that moves from the root of its document to `base`, a JSON pointer. Anchors keep
 * working if they are alone in the new document; otherwise `anchors` (see `findAnchors`) replaces them by pointers.
 */
export const rebaseSchema = (schema: Json, base: string, anchors?: ReadonlyMap<string, string>): Json => {
  const rebase = (node: Json): Json => {
    if (isSchemaResource(node)) return node
    let moved = mapSubschemas(node, rebase)
    for (const keyword of REFERENCES) {
      const text = node.get(keyword)?.asString()
      const target = text === undefined ? undefined : rebaseReference(text, base, anchors)
      if (target !== undefined) moved = moved.with(keyword, target)
    }
    return anchors ? withoutAnchors(moved) : moved
  }
  return rebase(schema)
}

const rebaseReference = (text: string, base: string, anchors?: ReadonlyMap<string, string>): string | undefined => {
  if (text === '#' || text.startsWith('#/')) return base + text.slice(1)
  const pointer = text.startsWith('#') ? anchors?.get(text.slice(1)) : undefined
  return pointer === undefined ? undefined : base + pointer
}

/** `$anchor`, and `$id: "#name"` as draft 7 spells it. */
const anchorsOf = (schema: Json): string[] => {
  const id = schema.get('$id')?.asString()
  return [schema.get('$anchor')?.asString() ?? '', id?.startsWith('#') ? id.slice(1) : ''].filter(name => name !== '')
}

const withoutAnchors = (schema: Json): Json =>
  schema.get('$id')?.asString()?.startsWith('#') ? schema.without('$anchor', '$id') : schema.without('$anchor')

/** The anchors of a schema, each with the JSON pointer from its root to the place. */
export const findAnchors = (schema: Json): ReadonlyMap<string, string> => {
  const anchors = new Map<string, string>()
  const collect = (node: Json, pointer: string): void => {
    if (isSchemaResource(node)) return
    for (const anchor of anchorsOf(node)) anchors.set(anchor, pointer)
    for (const { keyword, name, schema: child } of subschemasOf(node))
      collect(child, `${pointer}/${escapeToken(keyword)}${name === undefined ? '' : `/${escapeToken(name)}`}`)
  }
  collect(schema, '')
  return anchors
}

/** What a local JSON pointer (`#/$defs/x`) leads to; undefined for anchors and other documents. */
export const resolvePointer = (schema: Json, reference: string): Json | undefined => {
  if (reference === '#') return schema
  if (!reference.startsWith('#/')) return undefined
  let node: Json | undefined = schema
  for (const token of reference.slice(2).split('/')) {
    const name = unescapeToken(token)
    node = node?.kind === 'array' ? node.elements()[Number(name)] : node?.get(name)
  }
  return node
}

const escapeToken = (name: string): string =>
  encodeURI(Buffer.from(name).toString().replaceAll('~', '~0').replaceAll('/', '~1')).replaceAll('#', '%23')

const unescapeToken = (token: string): string => decodeToken(token).replaceAll('~1', '/').replaceAll('~0', '~')

const decodeToken = (token: string): string => {
  try {
    return decodeURIComponent(token)
  } catch {
    return token // an invalid escape is taken literally
  }
}
