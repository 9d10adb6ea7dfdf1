import { describe, expect, it } from 'vitest'
import type { CompileSettings } from '../plan.ts'
import { compileApi } from './compile.ts'

const URL_OF_DOCUMENT = 'https://api.test/docs/openapi.json'
const ALL: CompileSettings = { include: [], exclude: [], setHeaders: [], setQuery: [] }
const NO_FILES = (): Promise<string> => Promise.reject(new Error('there is no such file'))

const compile = (document: unknown, settings: Partial<CompileSettings> = {}, files: Record<string, string> = {}) =>
  compileApi(
    typeof document === 'string' ? document : JSON.stringify(document),
    URL_OF_DOCUMENT,
    { ...ALL, ...settings },
    async url => files[url] ?? NO_FILES(),
  )

const toolsOf = async (...given: Parameters<typeof compile>) =>
  (await compile(...given)).tools.map(({ definition, plan }) => ({ ...JSON.parse(definition), plan }))

const v30 = (paths: unknown, components: unknown = {}) => ({
  openapi: '3.0.3',
  info: { title: 'T', version: '1' },
  paths,
  components,
})
const ok = (schema: unknown) => ({ 200: { description: '', content: { 'application/json': { schema } } } })

describe('tools', () => {
  it('have names, texts, annotations and one schema for all arguments', async () => {
    const [get, put] = await toolsOf(
      v30(
        {
          '/pets/{id}': {
            parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' }, description: 'Which' }],
            get: { operationId: 'pets/get', summary: 'A pet', responses: ok({ type: 'object' }) },
            put: {
              parameters: [
                { name: 'id', in: 'query', schema: { type: 'string' } },
                { name: 'X-Key', in: 'header', schema: { type: 'string' } },
                { name: 'Authorization', in: 'header', schema: { type: 'string' } },
                { name: 'filter[name]', in: 'query', required: true, schema: { type: 'string' } },
              ],
              requestBody: {
                required: true,
                content: { 'application/json': { schema: { $ref: '#/components/schemas/Pet' } } },
              },
              deprecated: true,
              responses: { 204: { description: '' } },
            },
          },
        },
        {
          schemas: {
            Pet: {
              type: 'object',
              required: ['id', 'name'],
              properties: {
                id: { type: 'integer', readOnly: true },
                name: { type: 'string', nullable: true, example: 'Rex', minimum: 1, exclusiveMinimum: true, xml: {} },
                secret: { type: 'string', writeOnly: true },
                parent: { $ref: '#/components/schemas/Pet' },
              },
            },
          },
        },
      ),
      { setHeaders: ['x-key'] },
    )
    expect(get).toMatchObject({
      name: 'pets_get',
      title: 'A pet',
      description: 'A pet',
      inputSchema: {
        type: 'object',
        properties: { id: { type: 'integer', description: 'Which' } },
        required: ['id'],
        additionalProperties: false,
      },
      outputSchema: { type: 'object' },
      annotations: { readOnlyHint: true, destructiveHint: false },
    })
    expect(put.name).toBe('put_pets_id')
    expect(put.description).toBe('Deprecated.')
    expect(put.annotations).toMatchObject({ readOnlyHint: false, idempotentHint: true })
    expect(Object.keys(put.inputSchema.properties)).toEqual(['id', 'id_query', 'filter_name', 'body'])
    expect(put.inputSchema.required).toEqual(['id', 'filter_name', 'body'])
    expect(put.inputSchema.properties.body).toEqual({ $ref: '#/$defs/Pet' })
    expect(put.inputSchema.$defs.Pet).toEqual({
      type: 'object',
      properties: {
        name: { type: ['string', 'null'], examples: ['Rex'], exclusiveMinimum: 1 },
        secret: { type: 'string' },
        parent: { $ref: '#/$defs/Pet' },
      },
      required: ['name'],
    })
    expect(put.outputSchema).toBeUndefined()
    expect(put.plan.parameters.map(({ name }: { name: string }) => name)).toEqual(['id', 'id', 'filter[name]'])
  })

  it('describe answers without what callers only write, and without rules that APIs break', async () => {
    const [tool] = await toolsOf(
      v30({
        '/a': {
          get: {
            responses: ok({
              type: 'object',
              required: ['a'],
              additionalProperties: false,
              properties: {
                a: { type: 'string', format: 'date', enum: ['x'] },
                b: { writeOnly: true },
                c: { readOnly: true },
              },
            }),
          },
        },
      }),
    )
    expect(tool.outputSchema).toEqual({ type: 'object', properties: { a: { type: 'string' }, c: {} } })
  })

  it('are those that include and exclude leave', async () => {
    const operation = (tag: string) => ({ tags: [tag], responses: {} })
    const document = v30({
      '/a': { get: operation('red'), post: operation('red'), delete: operation('blue') },
      '/a/b': { get: { ...operation('blue'), operationId: 'listB' } },
    })
    const names = async (include: string[], exclude: string[] = []) =>
      (await compile(document, { include, exclude })).tools.map(({ plan }) => `${plan.method} ${plan.path}`)
    expect(await names(['tag:red'])).toEqual(['GET /a', 'POST /a'])
    expect(await names(['GET'])).toEqual(['GET /a', 'GET /a/b'])
    expect(await names(['/a/*'])).toEqual(['GET /a/b'])
    expect(await names(['post /a', 'id:list*'])).toEqual(['POST /a', 'GET /a/b'])
    expect(await names([], ['DELETE *', 'tag:blue'])).toEqual(['GET /a', 'POST /a'])
  })

  it('have distinct and stable names where ids collide or are too long', async () => {
    const id = 'x'.repeat(100)
    const paths = (...names: string[]) =>
      Object.fromEntries(
        names.map((name, at) => [`/p${name}`, { get: { operationId: at < 2 ? 'list' : id, responses: {} } }]),
      )
    const names = (await toolsOf(v30(paths('a', 'b', 'c', 'd')))).map(({ name }) => name)
    expect(names[0]).toMatch(/^list_[0-9a-f]{8}$/)
    expect(names[2]).toMatch(/^x{55}_[0-9a-f]{8}$/)
    expect(new Set(names).size).toBe(4)
    const again = (await toolsOf(v30({ ...paths('b', 'a', 'd', 'c') }))).map(({ name }) => name)
    expect(again.toSorted()).toEqual(names.toSorted())
    const [plain] = await toolsOf(v30({ '/p': { get: { operationId: 'Liste für Ünï', responses: {} } } }))
    expect(plain.name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
  })

  it('come from forms and files', async () => {
    const body = (type: string, schema: unknown, encoding?: unknown) => ({
      post: { requestBody: { content: { [type]: { schema, encoding } } }, responses: {} },
    })
    const binary = { type: 'string', format: 'binary' }
    const [form, multipart, text, bytes] = await toolsOf(
      v30({
        '/form': body(
          'application/x-www-form-urlencoded',
          {
            type: 'object',
            properties: { expand: { type: 'array', items: { type: 'string' } }, meta: { type: 'object' } },
          },
          { expand: { style: 'deepObject', explode: true } },
        ),
        '/files': body('multipart/form-data', {
          type: 'object',
          properties: { one: binary, many: { type: 'array', items: binary }, title: { type: 'string' } },
        }),
        '/text': body('text/csv', {}),
        '/bytes': body('image/png', {}),
      }),
    )
    expect(form.plan.body).toMatchObject({
      kind: 'form',
      parts: { expand: { style: 'deepObject' }, meta: { isJson: true } },
    })
    expect(multipart.plan.body).toMatchObject({
      kind: 'multipart',
      parts: { one: { isFile: true }, many: { isFile: true } },
    })
    expect(multipart.inputSchema.properties.body.properties).toMatchObject({
      one: { type: 'object', required: ['data'] },
      many: { type: 'array', items: { required: ['data'] } },
      title: { type: 'string' },
    })
    expect(text.plan.body).toMatchObject({ kind: 'text', mediaType: 'text/csv' })
    expect(bytes.inputSchema.properties.body).toMatchObject({ type: 'string', contentEncoding: 'base64' })
  })
})

describe('versions', () => {
  it('2.0 is converted', async () => {
    const { tools, servers, security } = await compile({
      swagger: '2.0',
      info: { title: 'Old', version: '1' },
      host: 'old.test',
      basePath: '/v1',
      schemes: ['http', 'https'],
      consumes: ['application/json'],
      produces: ['application/json'],
      security: [{ key: [] }, { login: [] }],
      securityDefinitions: {
        key: { type: 'apiKey', in: 'query', name: 'k' },
        login: {
          type: 'oauth2',
          flow: 'accessCode',
          authorizationUrl: 'https://a.test/a',
          tokenUrl: 'https://a.test/t',
          scopes: { r: '' },
        },
      },
      parameters: { Limit: { name: 'limit', in: 'query', type: 'integer', minimum: 1, exclusiveMinimum: true } },
      definitions: { Pet: { type: 'object', properties: { name: { type: 'string' } } } },
      paths: {
        '/pets': {
          get: {
            parameters: [
              { $ref: '#/parameters/Limit' },
              { name: 'tags', in: 'query', type: 'array', items: { type: 'string' }, collectionFormat: 'pipes' },
            ],
            responses: { 200: { description: '', schema: { $ref: '#/definitions/Pet' } } },
          },
          post: {
            parameters: [{ name: 'pet', in: 'body', required: true, schema: { $ref: '#/definitions/Pet' } }],
            responses: {},
          },
        },
        '/photo': {
          post: {
            parameters: [
              { name: 'file', in: 'formData', type: 'file', required: true },
              { name: 'title', in: 'formData', type: 'string' },
            ],
            responses: {},
          },
        },
      },
    })
    const [list, add, photo] = tools.map(({ definition }) => JSON.parse(definition))
    expect(list.inputSchema.properties.limit).toEqual({ type: 'integer', exclusiveMinimum: 1 })
    expect(list.outputSchema).toEqual({ type: 'object', properties: { name: { type: 'string' } } })
    expect(tools[0]?.plan.parameters[1]).toMatchObject({ style: 'pipeDelimited', explode: false })
    expect(add.inputSchema.required).toEqual(['body'])
    expect(photo.inputSchema.properties.body).toMatchObject({
      required: ['file'],
      properties: { file: { required: ['data'] } },
    })
    expect(servers.map(({ url }) => url)).toEqual(['https://old.test/v1', 'http://old.test/v1'])
    expect(security.needs).toEqual([
      'the parameter "k" in "api.query" (security scheme "key")',
      'a login ("oauth"), or the header "Authorization" in "headers" (security scheme "login")',
    ])
    expect(security.login).toEqual({
      authorizationUrl: 'https://a.test/a',
      tokenUrl: 'https://a.test/t',
      scopes: ['r'],
    })
  })

  it('3.1 keeps its schemas, and YAML is read', async () => {
    const [tool] = await toolsOf(`
openapi: 3.1.0
info: { title: T, version: '1' }
paths:
  /a:
    post:
      requestBody:
        content:
          application/json:
            schema:
              type: [object, 'null']
              properties:
                since: { type: string, examples: [2020-01-01] }
                n: { exclusiveMinimum: 3 }
                ref: { $ref: '#/components/schemas/Named', description: Here }
                pair: { prefixItems: [{ const: 1 }] }
      responses: { '204': { description: '' } }
components:
  schemas:
    Named: { type: string, maxLength: 5 }
`)
    expect(tool.inputSchema.properties.body).toEqual({
      type: ['object', 'null'],
      properties: {
        since: { type: 'string', examples: ['2020-01-01'] },
        n: { exclusiveMinimum: 3 },
        ref: { type: 'string', maxLength: 5, description: 'Here' },
        pair: { prefixItems: [{ const: 1 }] },
      },
    })
  })

  it.each([
    ['{"openapi": "4.0.0", "paths": {}}', 'names a document of OpenAPI 4.0.0; 2.0 and 3.0 to 3.2 can be read'],
    ['{"swagger": "1.2"}', 'names a document of OpenAPI 1.2; 2.0 and 3.0 to 3.2 can be read'],
    ['{"asyncapi": "3.0.0"}', /no member "openapi" or "swagger" \(it is an AsyncAPI document\)/],
    ['{"a": 1}', /no member "openapi" or "swagger"$/],
    ['[1]', /no object|no member/],
    ['hello', /it is no object/],
    ['', /it is no object/],
    ['<!doctype html><title>x</title>', 'names a document that is a page (HTML or XML), no OpenAPI document'],
    ['{"openapi": ', /is neither JSON nor YAML: /],
    ['a: b: c: [', /is neither JSON nor YAML: /],
  ])('%s is refused', async (text, message) => {
    await expect(compile(text)).rejects.toThrow(message)
  })
})

describe('references', () => {
  it('that are broken cost only their own operation', async () => {
    const { tools, skipped } = await compile(
      v30({
        '/good': { get: { responses: { 200: { $ref: '#/nowhere' } } } },
        '/bad': { get: { parameters: [{ $ref: '#/components/parameters/none' }], responses: {} } },
        '/self': { get: { parameters: [{ $ref: '#/paths/~1self/get/parameters/0' }], responses: {} } },
        '/gone': { $ref: 'other.yaml#/x' },
        '/body': {
          post: {
            requestBody: { content: { 'application/json': { schema: { items: { $ref: '#/x/y' } } } } },
            responses: {},
          },
        },
      }),
    )
    expect(tools.map(({ name }) => name)).toEqual(['get_good'])
    expect(skipped).toEqual([
      'GET /bad: the reference "#/components/parameters/none" leads nowhere',
      'GET /self: the reference "#/paths/~1self/get/parameters/0" leads to itself',
      '/gone: the reference "other.yaml#/x" cannot be read: there is no such file',
      'POST /body: the reference "#/x/y" leads nowhere',
    ])
  })

  it('to other files are followed from where they are', async () => {
    const { tools, files } = await compile(
      v30({ '/a': { $ref: 'parts/paths.yaml#/a' } }),
      {},
      {
        'https://api.test/docs/parts/paths.yaml':
          'a: { get: { parameters: [{ $ref: "../p.json#/Limit" }], responses: {} } }',
        'https://api.test/docs/p.json':
          '{"Limit": {"name": "limit", "in": "query", "schema": {"$ref": "#/N"}}, "N": {"type": "integer"}}',
      },
    )
    expect(JSON.parse(tools[0]?.definition ?? '').inputSchema.properties).toEqual({ limit: { type: 'integer' } })
    expect(files.toSorted()).toEqual(['https://api.test/docs/p.json', 'https://api.test/docs/parts/paths.yaml'])
  })

  it('in a circle stay references, in every form', async () => {
    const node = {
      type: 'object',
      properties: {
        next: { $ref: '#/components/schemas/Node' },
        all: { type: 'array', items: { $ref: '#/components/schemas/Other' } },
      },
    }
    const other = {
      allOf: [{ $ref: '#/components/schemas/Node' }, { nullable: true, $ref: '#/components/schemas/Other' }],
    }
    const [tool] = await toolsOf(
      v30(
        {
          '/a': {
            post: {
              requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Other' } } } },
              responses: ok({ $ref: '#/components/schemas/Node' }),
            },
          },
        },
        { schemas: { Node: node, Other: other } },
      ),
    )
    expect(Object.keys(tool.inputSchema.$defs)).toEqual(['Node', 'Other'])
    expect(tool.outputSchema.properties.next).toEqual({ $ref: '#/$defs/Node' })
    const yaml =
      'openapi: 3.1.0\npaths:\n  /a:\n    post:\n      requestBody: { content: { application/json: { schema: &s { type: object, properties: { a: *s } } } } }\n      responses: {}\n'
    await expect(compile(yaml)).resolves.toMatchObject({ tools: [{ name: 'post_a' }] })
  })
})

describe('large documents', () => {
  it('with 2,000 operations become as many tools', async () => {
    const paths = Object.fromEntries(
      Array.from({ length: 2000 }, (_, at) => [
        `/p${at}/{id}`,
        { get: { operationId: `op${at}`, responses: ok({ $ref: '#/components/schemas/A' }) } },
      ]),
    )
    const { tools } = await compile(
      v30(paths, { schemas: { A: { type: 'object', properties: { b: { type: 'string' } } } } }),
    )
    expect(new Set(tools.map(({ name }) => name)).size).toBe(2000)
  })

  it('do not show an enum of 1 MB', async () => {
    const values = Array.from({ length: 60_000 }, (_, at) => `value-number-${at}`)
    const [tool] = await toolsOf(
      v30({
        '/a': {
          get: { parameters: [{ name: 'v', in: 'query', schema: { type: 'string', enum: values } }], responses: {} },
        },
      }),
    )
    const { v } = tool.inputSchema.properties
    expect(v.enum).toBeUndefined()
    expect(v.description).toMatch(/^One of 60000 values, for example "value-number-0", "value-number-1"/)
    expect(JSON.stringify(tool).length).toBeLessThan(5000)
  })

  it('that expand without end are bounded', async () => {
    const levels = Array.from(
      { length: 40 },
      (_, at) => `l${at + 1}: &l${at + 1} { properties: { a: *l${at}, b: *l${at} } }`,
    )
    const yaml = `openapi: 3.1.0\nl0: &l0 { type: string }\n${levels.join('\n')}\npaths:\n  /a:\n    post:\n      requestBody: { content: { application/json: { schema: *l40 } } }\n      responses: {}\n`
    const [tool] = await toolsOf(yaml)
    expect(tool.inputSchema.properties.body).toEqual({ description: expect.stringContaining('too large to be shown') })
  })
})
