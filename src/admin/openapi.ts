import type { PlainObject } from '../wire/json/json.ts'
import type { AdminEndpoint, AdminSchema } from './endpoints.ts'

const ERROR_SCHEMA: AdminSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['message'],
      properties: { message: { type: 'string', description: 'what failed, why, and what to do' }, details: {} },
    },
  },
}

const SCHEMES: PlainObject = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'An API token for every workspace. Tokens created with --admin have the role owner, others viewer.',
  },
  session: {
    type: 'apiKey',
    in: 'cookie',
    name: 'dragoman-console',
    description:
      'The cookie of POST /admin/session; the port of the gateway is part of its name. Requests other than GET and HEAD need the header x-dragoman-csrf with the value that GET /admin/session gives.',
  },
}

const ANY = [{ bearer: [] }, { session: [] }]

/** Describes a table of endpoints as an OpenAPI 3.1 document. */
export const describeEndpoints = (endpoints: readonly AdminEndpoint[], version: string): PlainObject => {
  const paths: Record<string, Record<string, PlainObject>> = {}
  for (const endpoint of endpoints) {
    const { path, method } = endpoint
    paths[path] = { ...paths[path], [method.toLowerCase()]: operationOf(endpoint) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Dragoman admin API',
      version,
      description:
        'The HTTP API under the console and the command line. Callers are limited per second; 429 says when to go on.',
    },
    paths,
    components: { schemas: { Error: ERROR_SCHEMA }, securitySchemes: SCHEMES },
  }
}

const operationOf = (endpoint: AdminEndpoint): PlainObject => {
  const { method, path, access, summary, parameters = {}, headers = {}, response, media } = endpoint
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const inQuery = Object.entries(parameters).map(([name, schema]) => described(name, 'query', schema))
  const inHeaders = Object.entries(headers).map(([name, schema]) => ({
    ...described(name, 'header', schema),
    required: true,
  }))
  const all = [...inPath, ...inQuery, ...inHeaders]
  const bodies = requestBodyOf(endpoint)
  const content = { [media ?? 'application/json']: { schema: response ?? (media === undefined ? {} : TEXT) } }
  return {
    operationId: operationId(method, path),
    summary,
    tags: [path.split('/')[2] ?? 'admin'],
    description: ROLES[access],
    ...(access !== 'anyone' && { security: ANY }),
    ...(all.length > 0 && { parameters: all }),
    ...(bodies && { requestBody: bodies }),
    responses: {
      ...(endpoint.isEmpty ? { '204': { description: 'Done' } } : { '200': { description: 'Done', content } }),
      default: {
        description: 'Refused',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  }
}

const described = (name: string, place: 'query' | 'header', { description, ...schema }: AdminSchema): PlainObject => ({
  name,
  in: place,
  ...(description !== undefined && { description }),
  schema,
})

const requestBodyOf = ({ body, bodyMedia }: AdminEndpoint): PlainObject | undefined => {
  if (bodyMedia !== undefined) return { required: true, content: { [bodyMedia]: {} } }
  return body && { content: { 'application/json': { schema: body } } }
}

const TEXT: AdminSchema = { type: 'string' }

const ROLES: Readonly<Record<AdminEndpoint['access'], string>> = {
  anyone: 'For every caller.',
  viewer: 'For the role viewer: tokens for every workspace, and callers on this machine if no token is required.',
  owner: 'For the role owner: tokens created with --admin, and users who opened the link of "dragoman console".',
}

/** `getServersName` for `GET /admin/servers/{name}`. */
const operationId = (method: string, path: string): string =>
  method.toLowerCase() +
  path
    .replace('/admin/', '')
    .split(/[^\w]+/)
    .map(word => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')
