import type { ApiDocument, LocatedPart } from './api-document.ts'
import { type ApiObject, isApiObject, memberOf, memberPairs, textItems, textMember } from './shape.ts'

// Converts what an operation of OpenAPI 2.0 (Swagger) says to the members of 3.0. References are kept: they lead into the
// same document.

/** How lists are written, by `collectionFormat`; in a path or a header all are `simple`. */
const LIST_STYLES: Readonly<Record<string, ApiObject>> = {
  csv: { style: 'form', explode: false },
  ssv: { style: 'spaceDelimited', explode: false },
  tsv: { style: 'tabDelimited', explode: false },
  pipes: { style: 'pipeDelimited', explode: false },
  multi: { style: 'form', explode: true },
}

const NOT_OF_SCHEMA: ReadonlySet<string> = new Set(['name', 'in', 'required', 'collectionFormat', 'allowEmptyValue'])

const schemaOf = (parameter: ApiObject): ApiObject =>
  Object.fromEntries(Object.entries(parameter).filter(([key]) => !NOT_OF_SCHEMA.has(key)))

const styleOf = (parameter: ApiObject): ApiObject => {
  const isInQuery = parameter.in === 'query' || parameter.in === 'formData'
  if (!isInQuery || parameter.type !== 'array') return {}
  return LIST_STYLES[String(parameter.collectionFormat ?? 'csv')] ?? {}
}

const mediaTypes = (document: ApiDocument, operation: ApiObject, key: 'consumes' | 'produces'): readonly string[] =>
  textItems(operation[key] ?? memberOf(document.root, key))

/** An operation of 2.0, with its parameters, as one of 3.0. */
export const convertSwaggerOperation = (
  document: ApiDocument,
  operation: ApiObject,
  parameters: readonly LocatedPart[],
): { readonly operation: ApiObject; readonly parameters: readonly LocatedPart[] } => {
  const isOf = (...places: readonly string[]) =>
    parameters.filter(({ value }) => places.includes(String(memberOf(value, 'in'))))
  const plain = isOf('path', 'query', 'header').map(({ value, base }) => {
    const given = value as ApiObject
    const { name, in: place, required, description } = given
    return { base, value: { name, in: place, required, description, schema: schemaOf(given), ...styleOf(given) } }
  })
  const consumes = mediaTypes(document, operation, 'consumes')
  const [body] = isOf('body')
  const requestBody = body ? jsonBody(body.value, consumes) : formBody(isOf('formData'), consumes)
  const produces = mediaTypes(document, operation, 'produces')
  const responses = Object.fromEntries(
    memberPairs(operation.responses).map(([status, value]) => [
      status,
      convertResponse(document.follow(document.at(value)).value, produces),
    ]),
  )
  return { operation: { ...operation, responses, ...(requestBody && { requestBody }) }, parameters: plain }
}

const jsonBody = (parameter: unknown, consumes: readonly string[]): ApiObject => ({
  description: memberOf(parameter, 'description'),
  required: memberOf(parameter, 'required') === true,
  content: contentOf(consumes.length > 0 ? consumes : ['application/json'], memberOf(parameter, 'schema')),
})

const formBody = (parameters: readonly LocatedPart[], consumes: readonly string[]): ApiObject | undefined => {
  if (parameters.length === 0) return undefined
  const fields = parameters.map(({ value }) => value as ApiObject)
  const hasFiles = fields.some(({ type }) => type === 'file')
  const mediaType =
    hasFiles || (consumes.includes('multipart/form-data') && !consumes.includes('application/x-www-form-urlencoded'))
      ? 'multipart/form-data'
      : 'application/x-www-form-urlencoded'
  const required = fields.flatMap(({ name, required }) => (required === true ? [String(name)] : []))
  const schema = {
    type: 'object',
    properties: Object.fromEntries(fields.map(field => [String(field.name), schemaOf(field)])),
    required,
  }
  const encoding = Object.fromEntries(fields.map(field => [String(field.name), styleOf(field)]))
  return { required: required.length > 0, content: { [mediaType]: { schema, encoding } } }
}

const contentOf = (types: readonly string[], schema: unknown): ApiObject =>
  Object.fromEntries(types.map(type => [type, { schema }]))

const convertResponse = (response: unknown, produces: readonly string[]): ApiObject => {
  const schema = memberOf(response, 'schema')
  const description = memberOf(response, 'description')
  if (!isApiObject(schema)) return { description }
  return { description, content: contentOf(produces.length > 0 ? produces : ['application/json'], schema) }
}

/** `host`, `basePath` and `schemes` as `servers`. */
export const swaggerServers = ({ root }: ApiDocument): readonly ApiObject[] => {
  const host = textMember(root, 'host')
  const path = textMember(root, 'basePath') ?? '/'
  if (host === undefined) return [{ url: path }]
  const schemes = textItems(memberOf(root, 'schemes')).filter(scheme => scheme === 'http' || scheme === 'https')
  const sorted = schemes.length > 0 ? schemes.toSorted().toReversed() : ['https'] // https first
  return sorted.map(scheme => ({ url: `${scheme}://${host}${path}` }))
}

const FLOWS: Readonly<Record<string, string>> = { accessCode: 'authorizationCode', application: 'clientCredentials' }

/** `securityDefinitions` as `securitySchemes`. */
export const swaggerSchemes = ({ root }: ApiDocument): ApiObject =>
  Object.fromEntries(
    memberPairs(memberOf(root, 'securityDefinitions')).map(([name, scheme]) => {
      if (memberOf(scheme, 'type') === 'basic') return [name, { type: 'http', scheme: 'basic' }]
      if (memberOf(scheme, 'type') !== 'oauth2') return [name, scheme]
      const flow = textMember(scheme, 'flow') ?? ''
      return [name, { type: 'oauth2', flows: { [FLOWS[flow] ?? flow]: scheme } }]
    }),
  )
