import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, it } from 'vitest'
import type { AdminEndpoint } from './endpoints.ts'
import { describeEndpoints } from './openapi.ts'

const endpoint = (row: Partial<AdminEndpoint>): AdminEndpoint => ({
  method: 'GET',
  path: '/admin/things',
  access: 'viewer',
  summary: 'Things',
  run: () => ({}),
  ...row,
})

const TABLE = [
  endpoint({ parameters: { limit: { type: 'integer', description: 'at most' } } }),
  endpoint({ method: 'POST', access: 'owner', body: { type: 'object', properties: { name: { type: 'string' } } } }),
  endpoint({ method: 'DELETE', path: '/admin/things/{name}/parts/{id}', response: { type: 'object' } }),
  endpoint({
    method: 'PUT',
    path: '/admin/file',
    headers: { 'If-Match': { type: 'string', description: 'its tag' } },
    isEmpty: true,
  }),
  endpoint({ method: 'POST', path: '/admin/file', bodyMedia: 'application/octet-stream' }),
  endpoint({ path: '/admin/stream', access: 'anyone', media: 'text/event-stream' }),
]

it('is a valid OpenAPI document', async () => {
  const document = JSON.parse(JSON.stringify(describeEndpoints(TABLE, '1.2.3'))) as Record<string, unknown>
  expect(await new Validator().validate(document)).toEqual({ valid: true })
})

it('describes parameters, bodies, answers and who may call', () => {
  const { paths } = describeEndpoints(TABLE, '1') as unknown as {
    paths: Record<string, Record<string, Record<string, unknown>>>
  }
  expect(paths['/admin/things']?.get).toMatchObject({
    operationId: 'getThings',
    parameters: [{ name: 'limit', in: 'query', description: 'at most', schema: { type: 'integer' } }],
    security: [{ bearer: [] }, { session: [] }],
  })
  expect(paths['/admin/things']?.post?.requestBody).toEqual({
    content: { 'application/json': { schema: { type: 'object', properties: { name: { type: 'string' } } } } },
  })
  expect(paths['/admin/things/{name}/parts/{id}']?.delete).toMatchObject({
    operationId: 'deleteThingsNamePartsId',
    parameters: [
      { name: 'name', in: 'path', required: true },
      { name: 'id', in: 'path', required: true },
    ],
  })
  expect(paths['/admin/stream']?.get).toMatchObject({
    responses: { '200': { content: { 'text/event-stream': { schema: { type: 'string' } } } } },
  })
  expect(paths['/admin/stream']?.get).not.toHaveProperty('security')
  expect(paths['/admin/file']?.put).toMatchObject({
    parameters: [
      { name: 'If-Match', in: 'header', required: true, description: 'its tag', schema: { type: 'string' } },
    ],
  })
  expect(Object.keys(paths['/admin/file']?.put?.responses as object)).toEqual(['204', 'default'])
  expect(paths['/admin/file']?.post?.requestBody).toEqual({
    required: true,
    content: { 'application/octet-stream': {} },
  })
})
