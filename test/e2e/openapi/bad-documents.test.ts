import { afterEach, describe, expect, it } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { type Answer, answerJson, startRestApi } from '../../support/rest-api.ts'

// Documents as they are found: of every version, with mistakes, large, and with names that collide. Each is served at a URL,
// turned into tools, and called by a real client.

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** Answers with the method, path and body it was sent. */
const echo: Answer = ({ method, url, body }, response) =>
  answerJson({ at: `${method} ${url}`, body })({} as never, response)

/** A gateway before an API that has this document. */
const serve = async (document: object, { entry = {}, env = {}, rules = {} } = {}) => {
  const api = await startRestApi({ '/openapi.json': answerJson(document), '*': echo })
  closing.push(api.close)
  const value = {
    mcpServers: { api: { openapi: `${api.origin}/openapi.json`, ...entry } },
    workspaces: { default: { servers: ['api'], ...rules } },
    limits: { shutdownMs: 200 },
  }
  const snapshot = await loadConfig({ value, env, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, { log: SILENT })
  closing.push(gateway.close)
  await gateway.ready
  const connect = async (client: 'v1' | 'v2' = 'v2') => {
    const url = gateway.url()
    const connected = client === 'v1' ? await connectV1({ url }) : await connectV2('SDK v2 modern', { url })
    closing.push(connected.close)
    return connected
  }
  return { api, gateway, connect }
}

const ok = { 200: { description: '', content: { 'application/json': { schema: { type: 'object' } } } } }
const ID = { name: 'id', in: 'path', required: true }
const info = { title: 'Things', version: '1' }
const of = (paths: object, more: object = {}) => ({ openapi: '3.0.3', info, paths, ...more })
const body = (schema: object) => ({ requestBody: { content: { 'application/json': { schema } } } })

describe('every version', () => {
  const operation = { operationId: 'put', responses: ok }
  const schema = { type: 'object', properties: { n: { type: 'integer' } } }
  const v3 = (openapi: string, nullable: object) => ({
    ...{ openapi, info },
    paths: {
      '/v1/things/{id}': {
        put: {
          ...operation,
          parameters: [{ ...ID, schema: { type: 'string' } }],
          ...body({ ...schema, properties: { ...schema.properties, note: nullable } }),
        },
      },
    },
  })

  it.each<[string, object]>([
    ['3.0', v3('3.0.3', { type: 'string', nullable: true })],
    ['3.1', v3('3.1.0', { type: ['string', 'null'] })],
    [
      '2.0',
      {
        ...{ swagger: '2.0', info, basePath: '/v1', consumes: ['application/json'] },
        paths: {
          '/things/{id}': {
            put: {
              ...operation,
              parameters: [
                { ...ID, type: 'string' },
                { name: 'thing', in: 'body', schema: { ...schema, properties: { ...schema.properties, note: {} } } },
              ],
              responses: { 200: { description: '', schema: { type: 'object' } } },
            },
          },
        },
      },
    ],
  ])('%s is called with its parameters and its body', async (_, document) => {
    const { connect } = await serve(document)
    const client = await connect()
    const result = await client.call('put', { id: 'a b', body: { n: 1, note: null } })
    expect(JSON.parse(textOf(result))).toEqual({ at: 'PUT /v1/things/a%20b', body: '{"n":1,"note":null}' })
  })
})

describe('a document', () => {
  it('with broken references has all its other tools', async () => {
    const { connect } = await serve(
      of({
        '/good': { get: { operationId: 'good', responses: ok } },
        '/bad': { get: { operationId: 'bad', parameters: [{ $ref: '#/nowhere' }], responses: ok } },
        '/gone': { $ref: 'missing.yaml#/x' },
      }),
    )
    const client = await connect()
    expect(await client.toolNames()).toEqual(['good'])
    expect(textOf(await client.call('good'))).toContain('GET /good')
    await expect(client.call('bad')).rejects.toThrow(/bad/)
  })

  it('with cyclic schemas is read and called by clients of both eras', async () => {
    const Tree = {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string' },
        children: { type: 'array', items: { $ref: '#/components/schemas/Tree' } },
      },
    }
    const tree = { $ref: '#/components/schemas/Tree' }
    const answers = { 200: { description: '', content: { 'application/json': { schema: tree } } } }
    const { api, connect } = await serve(
      of(
        { '/trees': { post: { operationId: 'grow', ...body(tree), responses: answers } } },
        { components: { schemas: { Tree } } },
      ),
    )
    const value = { name: 'a', children: [{ name: 'b', children: [{ name: 'c' }] }] }
    for (const kind of ['v1', 'v2'] as const) {
      const client = await connect(kind)
      expect(await client.toolNames()).toEqual(['grow'])
      await client.call('grow', { body: value })
    }
    expect(api.hitsOf('/trees').map(hit => JSON.parse(hit.body) as unknown)).toEqual([value, value])
  })

  it('with ids that collide or are too long calls the right operation by each name', async () => {
    const long = 'list_everything_that_there_is_'.repeat(4)
    const paths = ['/a', '/b', '/c', '/d'].map((path, at) => [
      path,
      { get: { operationId: at < 2 ? 'list' : long, responses: ok } },
    ])
    const { connect } = await serve(of(Object.fromEntries(paths)))
    const client = await connect()
    const names = await client.toolNames()
    expect(names.filter(name => name.length > 64)).toEqual([])
    const called = await Promise.all(names.map(async name => JSON.parse(textOf(await client.call(name))).at as string))
    expect(called.toSorted()).toEqual(['GET /a', 'GET /b', 'GET /c', 'GET /d'])
    const again = await serve(of(Object.fromEntries(paths.toReversed())))
    const [client2, sorted] = [await again.connect(), names.toSorted()]
    expect((await client2.toolNames()).toSorted()).toEqual(sorted) // names do not depend on the order
  })

  it('with 2,000 operations is listed, and searched under a budget', async () => {
    const paths = Object.fromEntries(
      Array.from({ length: 2000 }, (_, at) => [
        `/p${at}/{id}`,
        {
          get: {
            operationId: `read_${at}`,
            summary: at === 1234 ? 'Weighs a tortoise' : `Reads thing number ${at}`,
            parameters: [{ ...ID, schema: { type: 'integer' } }],
            responses: ok,
          },
        },
      ]),
    )
    const { connect } = await serve(of(paths))
    expect(new Set(await (await connect()).toolNames()).size).toBe(2000)
    const short = await serve(of(paths), { rules: { budget: { tokens: 1000, favourites: [] } } })
    const client = await short.connect()
    expect(await client.toolNames()).toHaveLength(3)
    expect(textOf(await client.call('search_tools', { query: 'weigh the tortoise' }))).toContain('read_1234(id: ')
    const called = await client.call('call_tool', { name: 'read_1234', arguments: { id: 5 } })
    expect(textOf(called)).toContain('GET /p1234/5')
  })
})

describe('credentials', () => {
  const document = of({ '/a': { get: { operationId: 'a', responses: ok } } })

  it('come from the environment, in headers and in the query', async () => {
    const entry = { headers: { Authorization: 'Bearer ${TOKEN}' }, api: { query: { key: '${KEY}' } } }
    const { api, connect } = await serve(document, { entry, env: { TOKEN: 't-1', KEY: 'k&1' } })
    const client = await connect()
    await client.call('a')
    const [hit] = api.hitsOf('/a')
    expect([hit?.headers.authorization, hit?.url]).toEqual(['Bearer t-1', '/a?key=k%261'])
  })

  it('that are not in the environment are named, and nothing is called without them', async () => {
    const { api, gateway } = await serve(document, { entry: { headers: { Authorization: 'Bearer ${TOKEN}' } } })
    const ready = await (await fetch(`${gateway.origin}/readyz`)).text()
    expect(ready).toMatch(/TOKEN/)
    expect(api.hits).toEqual([])
  })
})
