import { bareMediaType, isJsonType, isTextType } from '../media-types.ts'
import type { BodyPlan, PartPlan } from '../plan.ts'
import type { ApiDocument, LocatedPart } from './api-document.ts'
import type { ApiOperation } from './operations.ts'
import { styleOfValue, type ToolArgument, withDescription } from './parameters.ts'
import { isBinarySchema, SchemaTooLarge, type SchemaWriter } from './schema-writer.ts'
import { isApiObject, memberOf, memberPairs, textMember } from './shape.ts'
import type { ArgumentNames } from './tool-names.ts'

type BodyKind = BodyPlan['kind']

/** Media types from the one that is easiest to write for a model. */
const KINDS: readonly (readonly [BodyKind, (mediaType: string) => boolean])[] = [
  ['json', isJsonType],
  ['form', type => type === 'application/x-www-form-urlencoded'],
  ['multipart', type => type.startsWith('multipart/')],
  ['text', isTextType],
  ['binary', () => true],
]

/** `type` without a wildcard. */
const CONCRETE: Readonly<Record<string, string>> = {
  '*/*': 'application/json',
  'application/*': 'application/json',
  'text/*': 'text/plain',
}

const BASE64 = 'The bytes in base64.'

/** The body of an operation as an argument, and how it is sent. Throws BrokenReference. */
export const readRequestBody = (
  document: ApiDocument,
  { members, base }: ApiOperation,
  { writer, names }: { readonly writer: SchemaWriter; readonly names: ArgumentNames },
): { readonly plan: BodyPlan; readonly argument: ToolArgument } | undefined => {
  if (members.requestBody === undefined) return undefined
  const body = document.follow({ value: members.requestBody, base })
  const chosen = chooseMediaType(memberOf(body.value, 'content'))
  if (!chosen) return undefined
  const { mediaType, kind } = chosen
  const media = document.follow({ value: chosen.value, base: body.base })
  const part: LocatedPart = { value: memberOf(media.value, 'schema') ?? {}, base: media.base }
  const argument = names.take('body', 'content')
  const parts = kind === 'form' || kind === 'multipart' ? readParts(document, part, media.value, kind) : {}
  const schema = writeBody(writer, part, kind, parts)
  return {
    plan: { argument, mediaType, kind, parts },
    argument: {
      name: argument,
      schema: withDescription(schema, textMember(body.value, 'description')),
      isRequired: memberOf(body.value, 'required') === true,
    },
  }
}

const chooseMediaType = (
  content: unknown,
): { readonly mediaType: string; readonly kind: BodyKind; readonly value: unknown } | undefined => {
  for (const [kind, fits] of KINDS)
    for (const [given, value] of memberPairs(content)) {
      const bare = bareMediaType(given)
      const mediaType = CONCRETE[bare] ?? (bare.endsWith('/*') ? 'application/octet-stream' : given)
      if (fits(bareMediaType(mediaType))) return { mediaType, kind, value }
    }
  return undefined
}

const writeBody = (
  writer: SchemaWriter,
  part: LocatedPart,
  kind: BodyKind,
  parts: Readonly<Record<string, PartPlan>>,
): Record<string, unknown> | boolean => {
  if (kind === 'binary') return { type: 'string', contentEncoding: 'base64', description: BASE64 }
  if (kind === 'text') return { type: 'string' }
  const schema = writeBounded(writer, part)
  if (kind === 'json' || !isApiObject(schema)) return schema
  const properties = isApiObject(schema.properties) ? schema.properties : {}
  const files = Object.entries(parts).filter(([name, { isFile }]) => isFile && name in properties)
  const shown = files.map(([name]) => [name, fileSchema(properties[name])])
  return { ...schema, properties: { ...properties, ...Object.fromEntries(shown) } }
}

/** A schema that is too large to be shown leaves the model with the description. */
const writeBounded = (writer: SchemaWriter, part: LocatedPart): Record<string, unknown> | boolean => {
  try {
    return writer.write(part)
  } catch (error) {
    if (!(error instanceof SchemaTooLarge)) throw error
    return { description: 'Its schema is too large to be shown; see the documentation of the API.' }
  }
}

const fileSchema = (schema: unknown): unknown => {
  const isList = memberOf(schema, 'type') === 'array'
  const description = textMember(schema, 'description')
  const file = {
    type: 'object',
    properties: {
      data: { type: 'string', contentEncoding: 'base64', description: BASE64 },
      filename: { type: 'string' },
      mimeType: { type: 'string' },
    },
    required: ['data'],
    ...(description !== undefined && !isList && { description }),
  }
  return isList ? { type: 'array', items: file, ...(description !== undefined && { description }) } : file
}

/** How each member of a form is written. */
const readParts = (
  document: ApiDocument,
  schema: LocatedPart,
  media: unknown,
  kind: 'form' | 'multipart',
): Record<string, PartPlan> => {
  const object = document.follow(schema)
  const encoding = memberOf(media, 'encoding')
  const entries = memberPairs(memberOf(object.value, 'properties')).map(([name, value]) => {
    const own = memberOf(encoding, name)
    const mediaType = textMember(own, 'contentType')?.split(',')[0]?.trim()
    const target = document.follow({ value, base: object.base })
    const items = document.follow({ value: memberOf(target.value, 'items') ?? {}, base: target.base })
    const isFile = kind === 'multipart' && (isBinarySchema(target.value) || isBinarySchema(items.value))
    const hasStyle = memberOf(own, 'style') !== undefined || memberOf(own, 'explode') !== undefined
    const isJson = !hasStyle && (mediaType === undefined ? isNested(target.value) : isJsonType(mediaType))
    const plan: PartPlan = {
      ...styleOfValue(own, 'form'),
      ...(mediaType !== undefined && { mediaType }),
      ...(isFile && { isFile }),
      ...(isJson && { isJson }),
    }
    return [name, plan] as const
  })
  return Object.fromEntries(entries)
}

/** Objects in forms are JSON, unless a style is given. */
const isNested = (schema: unknown): boolean =>
  memberOf(schema, 'type') === 'object' || isApiObject(memberOf(schema, 'properties'))
