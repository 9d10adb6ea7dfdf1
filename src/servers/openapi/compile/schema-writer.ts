import { isOctetStream } from '../media-types.ts'
import type { ApiDocument, LocatedPart } from './api-document.ts'
import { type ApiObject, isApiObject, itemsOf, memberOf, memberPairs, textItems, textMember } from './shape.ts'

/** Whether a schema describes what is sent to the API, or what it answers. */
export type SchemaDirection = 'input' | 'output'

type WrittenSchema = Record<string, unknown> | boolean

/** A schema has more parts than a tool can show. */
export class SchemaTooLarge extends Error {
  override readonly name = 'SchemaTooLarge'
}

const SCHEMA_MAPS = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'] as const
const SCHEMA_LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const
const SCHEMAS = [
  ...['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains', 'propertyNames'],
  ...['unevaluatedProperties', 'unevaluatedItems', 'contentSchema'],
] as const

/** Keywords of OpenAPI that JSON Schema does not have, or that are converted. */
const DROPPED: ReadonlySet<string> = new Set([
  ...['nullable', 'readOnly', 'writeOnly', 'discriminator', 'xml', 'externalDocs', 'example', 'required', 'enum'],
  ...['$schema', '$id', 'id', '$anchor', '$dynamicAnchor', '$dynamicRef', '$vocabulary', '$ref', 'collectionFormat'],
  ...[
    'exclusiveMinimum',
    'exclusiveMaximum',
    'minimum',
    'maximum',
    'type',
    ...SCHEMA_MAPS,
    ...SCHEMA_LISTS,
    ...SCHEMAS,
  ],
])

/** What real APIs violate most: clients reject a whole result that does not match its schema. */
const NOT_IN_OUTPUT: ReadonlySet<string> = new Set([
  ...['format', 'pattern', 'minLength', 'maxLength', 'minItems', 'maxItems', 'uniqueItems', 'multipleOf', 'default'],
  ...['minProperties', 'maxProperties', 'examples', 'deprecated'],
])

const DEEPEST = 200
const ENUM_BYTES = 16 * 1024
const SHOWN_VALUES = 20
const INLINE_BYTES = 500

/**
 * Writes schemas of a document as JSON Schema 2020-12. What references lead to is written once, in `defs`, so that recursion
 * stays what it is. Throws BrokenReference, or SchemaTooLarge after `mostParts`.
 */
export class SchemaWriter {
  readonly #document: ApiDocument
  readonly #direction: SchemaDirection
  readonly #names = new Map<string, string>() // by the id of the reference
  readonly #taken = new Set<string>()
  readonly #open = new Set<object>() // that are being written: YAML aliases may lead into a circle
  #left: number
  readonly defs: Record<string, WrittenSchema> = {}

  constructor(document: ApiDocument, direction: SchemaDirection, mostParts: number) {
    this.#document = document
    this.#direction = direction
    this.#left = mostParts
  }

  /** `isReferred`: a reference leads to it, perhaps from within itself. */
  write({ value, base }: LocatedPart, depth = 0, isReferred = false): WrittenSchema {
    if (typeof value === 'boolean') return value
    if (!isApiObject(value)) return {}
    const isCircle = this.#open.has(value) && !isReferred
    if (--this.#left < 0 || depth > DEEPEST || isCircle) throw new SchemaTooLarge('too many parts')
    if (textMember(value, '$ref') !== undefined) return this.#writeReference(value, base, depth)
    this.#open.add(value)
    const written = this.#writeObject(value, base, depth + 1)
    this.#open.delete(value)
    return written
  }

  #writeReference(schema: ApiObject, base: string, depth: number): WrittenSchema {
    const target = this.#document.follow({ value: schema, base })
    const { $ref: _, nullable, ...rest } = schema
    const beside = this.#writeObject(rest, base, depth)
    const id = target.id ?? ''
    const known = this.#names.get(id)
    if (known === undefined && isLeaf(target.value)) {
      const inlined = this.write(target, depth + 1)
      return typeof inlined === 'boolean' ? inlined : withNull({ ...inlined, ...beside }, nullable === true)
    }
    const name = known ?? this.#reserve(id)
    if (known === undefined) this.defs[name] = this.write(target, depth + 1, true)
    return withNull({ $ref: `#/$defs/${name}`, ...beside }, nullable === true)
  }

  /** The last part of a reference, made unique, without characters that would have to be escaped. */
  #reserve(id: string): string {
    const last = id.slice(id.lastIndexOf('/') + 1).replace(/[^\w.-]/g, '_') || 'schema'
    let name = last
    for (let count = 2; this.#taken.has(name); count++) name = `${last}_${count}`
    this.#taken.add(name)
    this.#names.set(id, name)
    return name
  }

  #writeObject(schema: ApiObject, base: string, depth: number): Record<string, unknown> {
    const isOutput = this.#direction === 'output'
    const written: Record<string, unknown> = {}
    for (const [key, value] of Object.entries(schema))
      if (!DROPPED.has(key) && !key.startsWith('x-') && !(isOutput && NOT_IN_OUTPUT.has(key))) written[key] = value
    const type = typesOf(schema)
    if (type !== undefined) written.type = type
    if (type === 'string' && schema.type === 'file') written.contentEncoding = 'base64'
    if (schema.example !== undefined && written.examples === undefined && !isOutput) written.examples = [schema.example]
    if (!isOutput) Object.assign(written, boundsOf(schema))
    for (const key of SCHEMA_MAPS) if (isApiObject(schema[key])) written[key] = this.#writeMap(key, schema, base, depth)
    for (const key of SCHEMA_LISTS)
      if (Array.isArray(schema[key])) written[key] = schema[key].map(value => this.write({ value, base }, depth))
    for (const key of SCHEMAS) this.#writeMember(written, key, schema[key], base, depth)
    if (!isOutput) {
      const shown = new Set(Object.keys(isApiObject(written.properties) ? written.properties : {}))
      const hidden = Object.keys(isApiObject(schema.properties) ? schema.properties : {}).filter(key => !shown.has(key))
      const required = textItems(schema.required).filter(key => !hidden.includes(key))
      if (required.length > 0) written.required = required
    }
    this.#writeEnum(written, schema)
    return withNull(written, schema.nullable === true)
  }

  #writeMap(key: string, schema: ApiObject, base: string, depth: number): Record<string, WrittenSchema> {
    const hiding = this.#direction === 'input' ? 'readOnly' : 'writeOnly'
    const written: Record<string, WrittenSchema> = {}
    for (const [name, value] of memberPairs(schema[key])) {
      if (key === 'properties' && memberOf(this.#document.follow({ value, base }).value, hiding) === true) continue
      Object.defineProperty(written, name, {
        value: this.write({ value, base }, depth),
        enumerable: true,
        writable: true,
        configurable: true,
      })
    }
    return written
  }

  #writeMember(written: Record<string, unknown>, key: string, value: unknown, base: string, depth: number): void {
    if (value === undefined) return
    if (key === 'items' && Array.isArray(value)) {
      written.prefixItems = value.map(item => this.write({ value: item, base }, depth)) // as it is called since 2020-12
      return
    }
    if (this.#direction === 'output' && value === false) return // APIs add members
    if (isApiObject(value) || typeof value === 'boolean') written[key] = this.write({ value, base }, depth)
  }

  /** A model cannot use thousands of values, and an API adds values to its answers: there they are no rule. */
  #writeEnum(written: Record<string, unknown>, schema: ApiObject): void {
    if (!Array.isArray(schema.enum)) return
    if (this.#direction === 'output') return
    const values: readonly unknown[] =
      schema.nullable === true && !schema.enum.includes(null) ? [...schema.enum, null] : schema.enum
    if (JSON.stringify(values).length <= ENUM_BYTES) {
      written.enum = values
      return
    }
    const shown = values.slice(0, SHOWN_VALUES).map(value => JSON.stringify(value)?.slice(0, 100))
    const note = `One of ${values.length} values, for example ${shown.join(', ')}.`.slice(0, 2000)
    written.description = typeof schema.description === 'string' ? `${schema.description}\n${note}` : note
  }
}

/** A small schema without parts: it is repeated where it is used, which clients read more easily than a reference. */
const isLeaf = (value: unknown): boolean => {
  if (!isApiObject(value)) return true
  const hasParts = [...SCHEMA_MAPS, ...SCHEMA_LISTS, ...SCHEMAS].some(key => typeof value[key] === 'object')
  return !hasParts && value.$ref === undefined && itemsOf(value.enum).length < 50 && sizeOf(value) <= INLINE_BYTES
}

const sizeOf = (value: ApiObject): number => JSON.stringify(value).length

const typesOf = ({ type }: ApiObject): unknown => {
  if (type === 'file') return 'string'
  if (type === 'any') return undefined
  return typeof type === 'string' || Array.isArray(type) ? type : undefined
}

/** In 3.0 `exclusiveMinimum` is a flag of `minimum`; since then it is a number itself. */
const boundsOf = (schema: ApiObject): Record<string, unknown> => {
  const bounds: Record<string, unknown> = {}
  for (const [key, exclusive] of [
    ['minimum', 'exclusiveMinimum'],
    ['maximum', 'exclusiveMaximum'],
  ] as const) {
    if (typeof schema[exclusive] === 'number') bounds[exclusive] = schema[exclusive]
    if (typeof schema[key] === 'number') bounds[schema[exclusive] === true ? exclusive : key] = schema[key]
  }
  return bounds
}

/** `nullable` of 3.0. */
const withNull = (schema: Record<string, unknown>, isNullable: boolean): Record<string, unknown> => {
  if (!isNullable) return schema
  const { type } = schema
  if (typeof type === 'string') return { ...schema, type: [type, 'null'] }
  if (Array.isArray(type)) return type.includes('null') ? schema : { ...schema, type: [...type, 'null'] }
  const { description, ...rest } = schema
  return { ...(description !== undefined && { description }), anyOf: [rest, { type: 'null' }] }
}

/** Whether a schema stands for the bytes of a file. */
export const isBinarySchema = (value: unknown): boolean => {
  const mediaType = textMember(value, 'contentMediaType')
  return (
    memberOf(value, 'type') === 'file' ||
    memberOf(value, 'format') === 'binary' ||
    memberOf(value, 'contentEncoding') === 'base64' ||
    (mediaType !== undefined && isOctetStream(mediaType))
  )
}
