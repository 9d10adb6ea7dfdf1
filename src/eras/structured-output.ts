import { Json } from '../wire/json/json.ts'
import { mapMembers } from './members.ts'
import { admissionOf } from './schema-admission.ts'
import { isOwnBase, rebase } from './schema-refs.ts'

// Until 2025-11-25 structured output is an object. Which values are wrapped must follow from the value alone, for
// whoever converts a result has not seen the tool's schema: an object stays, anything else becomes {"result": value}.
// What is shown of the schema allows just that: both forms where the tool may return either.

const ALWAYS = Json.empty
const NEVER = Json.of({ not: {} })
const OBJECT = Json.of('object')

const asObject = (value: Json): Json => (value.isObject ? value : Json.of({ result: value }))

/** A result, or a tool_result block, whose structured content is an object. */
export const withObjectOutput = (holder: Json): Json => {
  const value = holder.get('structuredContent')
  return value ? holder.with('structuredContent', asObject(value)) : holder
}

/** A tool whose schemas are objects in the manner of 2025-11-25: clients that find one otherwise refuse the whole list. */
export const withObjectSchemas = (tool: Json): Json => {
  const input = tool.get('inputSchema')
  const output = tool.get('outputSchema')
  const shown = input?.isObject ? tool.with('inputSchema', withObjectProperties(input)) : tool
  if (!output) return shown
  // `true` promises nothing, and there is no object to say that with.
  return output.isObject ? shown.with('outputSchema', withObjectRoot(output)) : shown.without('outputSchema')
}

const withObjectRoot = (schema: Json): Json => {
  if (schema.get('type')?.isString('object')) return withObjectProperties(schema)
  const { objects, others } = admissionOf(schema)
  if (!others) return withObjectProperties(schema.with('type', OBJECT))
  return objects ? eitherForm(schema) : wrappedForm(schema)
}

const wrappedForm = (schema: Json): Json =>
  Json.of({
    $schema: schema.get('$schema'),
    type: 'object',
    properties: { result: moved(schema, '#/properties/result') },
    required: ['result'],
  })

const eitherForm = (schema: Json): Json => {
  const result = { $ref: isOwnBase(schema) ? (schema.get('$id') ?? '') : '#/anyOf/0' }
  return Json.of({
    $schema: schema.get('$schema'),
    type: 'object',
    anyOf: [moved(schema, '#/anyOf/0'), { properties: { result }, required: ['result'] }],
  })
}

/** The dialect is the whole document's affair, so it stays at the root. */
const moved = (schema: Json, base: string): Json => rebase(schema.without('$schema'), base)

/** `true` and `false` are schemas of a property only since 2026-07-28. */
const withObjectProperties = (schema: Json): Json => {
  const properties = schema.get('properties')
  if (!properties?.isObject || !mentionsBoolean(properties)) return schema
  return schema.with(
    'properties',
    mapMembers(properties, property => {
      if (property.kind !== 'boolean') return property
      return property.asBoolean() ? ALWAYS : NEVER
    }),
  )
}

/** Lists are long and such properties rare: a look at the bytes spares reading most of them. */
const mentionsBoolean = (value: Json): boolean => {
  const bytes = value.toBytes()
  return bytes.includes('true') || bytes.includes('false')
}
