import type { Json } from '../wire/json/json.ts'
import { resolvePointer } from './json-schema.ts'

/** A type of JSON Schema. */
export type SchemaType = 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'array' | 'object'

const MAX_REFERENCES = 16

/** The schema that local references lead to. */
export const resolveSchema = (schema: Json | undefined, root: Json): Json | undefined => {
  let found = schema
  for (let step = 0; step < MAX_REFERENCES; step++) {
    const reference = found?.get('$ref')?.asString()
    if (reference === undefined) return found
    found = resolvePointer(root, reference)
  }
  return undefined
}

/** The alternatives of a schema, each resolved; the schema itself if it has none. */
export const alternativesOf = (schema: Json, root: Json): readonly Json[] => {
  const given = schema.get('anyOf') ?? schema.get('oneOf')
  const resolved = (given?.elements() ?? []).map(each => resolveSchema(each, root) ?? each)
  return resolved.length > 0 ? resolved : [schema]
}

/** The values that a schema lists, with their titles; undefined if it lists none. */
export const choicesOf = (schema: Json): readonly { readonly value: Json; readonly title: string }[] | undefined => {
  const values = schema.get('enum')?.elements()
  if (values) {
    const names = schema.get('enumNames')?.elements() ?? []
    return values.map((value, i) => ({ value, title: names[i]?.asString() ?? textOfValue(value) }))
  }
  const constants = (schema.get('oneOf') ?? schema.get('anyOf'))?.elements() ?? []
  if (constants.length === 0 || !constants.every(each => each.has('const'))) return undefined
  return constants.map(each => {
    const value = each.get('const') as Json
    return { value, title: each.get('title')?.asString() ?? textOfValue(value) }
  })
}

/** A string without its quotes; any other value as JSON. */
export const textOfValue = (value: Json): string => value.asString() ?? value.toString()

/** The types that a schema allows, in its order; empty: any. */
export const typesOf = (schema: Json): readonly SchemaType[] => {
  const type = schema.get('type')
  const names = type?.kind === 'array' ? type.elements() : type ? [type] : []
  return names.flatMap(name => (name.asString() as SchemaType | undefined) ?? [])
}

export const requiredOf = (schema: Json): ReadonlySet<string> =>
  new Set(
    schema
      .get('required')
      ?.elements()
      .flatMap(name => name.asString() ?? []) ?? [],
  )

const MOST_MEMBERS = 8
const MOST_CHOICES = 8
const MOST_ALTERNATIVES = 8
const MOST_NESTED = 4 // arrays and alternatives: a schema may contain itself
const LONGEST_VALUE = 100 // characters of one choice

/** How much deeper a type is written. */
interface TypeDepth {
  readonly objects: number
  readonly nested: number
}

/** A type as people read it: `string`, `"a" | "b"`, `integer[]`, `{street?: string}`. */
export const typeText = (
  given: Json | undefined,
  root: Json,
  depth: TypeDepth = { objects: 2, nested: MOST_NESTED },
): string => {
  const schema = resolveSchema(given, root)
  if (!schema?.isObject) return 'any'
  const constant = schema.get('const')
  if (constant) return valueText(constant)
  const choices = choicesOf(schema)
  if (choices) {
    const shown = choices.slice(0, MOST_CHOICES).map(({ value }) => valueText(value))
    return [...shown, ...(choices.length > MOST_CHOICES ? ['…'] : [])].join(' | ')
  }
  if (depth.nested === 0) return 'any'
  const alternatives = alternativesOf(schema, root)
  if (alternatives.length > 1) {
    const inner = { ...depth, nested: depth.nested - 1 }
    const shown = alternatives.slice(0, MOST_ALTERNATIVES).map(each => typeText(each, root, inner))
    return [...new Set(shown), ...(alternatives.length > MOST_ALTERNATIVES ? ['…'] : [])].join(' | ')
  }
  const [only = schema] = alternatives
  const types = typesOf(only)
  if (types.length === 0) return only.has('properties') ? objectText(only, root, depth) : 'any'
  return types.map(type => oneType(type, only, root, depth)).join(' | ')
}

const valueText = (value: Json): string => {
  const text = value.toString()
  return text.length <= LONGEST_VALUE ? text : `${text.slice(0, LONGEST_VALUE)}…`
}

const oneType = (type: SchemaType, schema: Json, root: Json, depth: TypeDepth): string => {
  if (type === 'array') {
    const item = typeText(schema.get('items'), root, { ...depth, nested: depth.nested - 1 })
    return item.includes(' ') ? `(${item})[]` : `${item}[]`
  }
  return type === 'object' ? objectText(schema, root, depth) : type
}

const objectText = (schema: Json, root: Json, depth: TypeDepth): string => {
  const properties = schema.get('properties')?.entries() ?? []
  if (properties.length === 0 || depth.objects === 0) return 'object'
  const required = requiredOf(schema)
  const inner = { ...depth, objects: depth.objects - 1 }
  const members = properties
    .slice(0, MOST_MEMBERS)
    .map(([name, each]) => `${name}${required.has(name) ? '' : '?'}: ${typeText(each, root, inner)}`)
  return `{${[...members, ...(properties.length > MOST_MEMBERS ? ['…'] : [])].join(', ')}}`
}

/** One parameter of a tool. */
export interface Parameter {
  readonly name: string
  readonly schema: Json // resolved
  readonly isRequired: boolean
}

/** The parameters of an input schema, the required ones first. */
export const parametersOf = (schema: Json): readonly Parameter[] => {
  const required = requiredOf(schema)
  const all = (schema.get('properties')?.entries() ?? []).map(([name, each]) => ({
    name,
    schema: resolveSchema(each, schema) ?? each,
    isRequired: required.has(name),
  }))
  return [...all.filter(({ isRequired }) => isRequired), ...all.filter(({ isRequired }) => !isRequired)]
}

/** `name(required: type, optional?: type = default)`. */
export const signatureOf = (name: string, schema: Json): string => {
  const parameters = parametersOf(schema).map(each => {
    const fallback = each.schema.get('default')
    const type = typeText(each.schema, schema)
    return `${each.name}${each.isRequired ? '' : '?'}: ${type}${fallback ? ` = ${fallback}` : ''}`
  })
  return `${name}(${parameters.join(', ')})`
}
