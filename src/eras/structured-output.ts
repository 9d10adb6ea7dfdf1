import { isSchemaResource, rebaseSchema, resolvePointer } from '../protocol/json-schema.ts'
import { Json } from '../wire/json/json.ts'
import { mapMembers } from '../wire/json/map-members.ts'

// Until 2025-11-25 structured output is an object. The code that converts a result has not seen the tool's schema, so
// wrapping depends on the value alone: an object stays, anything else becomes {"result": value}. The converted schema
// allows exactly that: both forms where the tool may return either.

const ALWAYS = Json.empty
const NEVER = Json.of({ not: {} })
const OBJECT = Json.of('object')

const asObject = (value: Json): Json => (value.isObject ? value : Json.of({ result: value }))

/** A result, or a tool_result block, whose structured content is an object. */
export const withObjectOutput = (holder: Json): Json => {
  const value = holder.get('structuredContent')
  return value ? holder.with('structuredContent', asObject(value)) : holder
}

/** A tool with schemas as 2025-11-25 requires them: clients reject the whole list if one tool has another kind. */
export const withObjectSchemas = (tool: Json): Json => {
  const input = tool.get('inputSchema')
  const output = tool.get('outputSchema')
  const shown = input?.isObject ? tool.with('inputSchema', withObjectProperties(input)) : tool
  if (!output) return shown
  // `true` allows every value, and no object schema of 2025-11-25 says that.
  return output.isObject ? shown.with('outputSchema', withObjectRoot(output)) : shown.without('outputSchema')
}

const withObjectRoot = (schema: Json): Json => {
  if (schema.get('type')?.isString('object')) return withObjectProperties(schema)
  const { objects, others } = allowedKinds(schema)
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
  const result = { $ref: isSchemaResource(schema) ? (schema.get('$id') ?? '') : '#/anyOf/0' }
  return Json.of({
    $schema: schema.get('$schema'),
    type: 'object',
    anyOf: [moved(schema, '#/anyOf/0'), { properties: { result }, required: ['result'] }],
  })
}

/** `$schema` applies to the whole document, so it stays at the root. */
const moved = (schema: Json, base: string): Json => rebaseSchema(schema.without('$schema'), base)

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

/** Lists are long and boolean properties rare: searching the bytes avoids parsing most schemas. */
const mentionsBoolean = (value: Json): boolean => {
  const bytes = value.toBytes()
  return bytes.includes('true') || bytes.includes('false')
}

/** Whether a schema can accept an object, and whether it can accept another value. True if in doubt. */
interface AllowedKinds {
  readonly objects: boolean
  readonly others: boolean
}

const ANYTHING: AllowedKinds = { objects: true, others: true }
const NOTHING: AllowedKinds = { objects: false, others: false }

/** Reads what a schema says about the kind of its values; constraints on members and elements are ignored. */
const allowedKinds = (schema: Json): AllowedKinds => {
  // Each target is read once and counts as ANYTHING until then, so that cycles end and many references stay cheap.
  const byReference = new Map<string, AllowedKinds>()

  const follow = (pointer: string): AllowedKinds => {
    const before = byReference.get(pointer)
    if (before) return before
    byReference.set(pointer, ANYTHING)
    const target = resolvePointer(schema, pointer)
    const found = target ? read(target) : ANYTHING
    byReference.set(pointer, found)
    return found
  }

  const read = (node: Json): AllowedKinds => {
    if (node.kind === 'boolean') return node.asBoolean() ? ANYTHING : NOTHING
    if (!node.isObject || (node !== schema && isSchemaResource(node))) return ANYTHING
    const pointer = node.get('$ref')?.asString()
    const constant = node.get('const')
    return both([
      byType(node.get('type')),
      constant ? byValues([constant]) : ANYTHING,
      node.has('enum') ? byValues(node.get('enum')?.elements() ?? []) : ANYTHING,
      pointer === undefined ? ANYTHING : follow(pointer),
      ...(node.get('allOf')?.elements() ?? []).map(read),
      ...['anyOf', 'oneOf'].flatMap(key => (node.has(key) ? [either(node.get(key)?.elements().map(read) ?? [])] : [])),
    ])
  }

  return read(schema)
}

const both = (parts: readonly AllowedKinds[]): AllowedKinds => ({
  objects: parts.every(part => part.objects),
  others: parts.every(part => part.others),
})

const either = (parts: readonly AllowedKinds[]): AllowedKinds => ({
  objects: parts.some(part => part.objects),
  others: parts.some(part => part.others),
})

const byType = (type: Json | undefined): AllowedKinds => {
  if (!type) return ANYTHING
  const types = type.kind === 'array' ? type.elements() : [type]
  return {
    objects: types.some(each => each.isString('object')),
    others: types.some(each => !each.isString('object')),
  }
}

const byValues = (values: readonly Json[]): AllowedKinds => ({
  objects: values.some(value => value.isObject),
  others: values.some(value => !value.isObject),
})
