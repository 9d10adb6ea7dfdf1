import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkServers } from '../../../src/app/check.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { SILENT } from '../../../src/telemetry/log.ts'
import { runCli, startTestDaemon } from '../../support/cli.ts'
import { type Asked, type TestClient, textOf } from '../../support/client.ts'
import { connectV1 } from '../../support/client-v1.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { createBrowser } from '../../support/login/browser.ts'
import { startLoginSite } from '../../support/login/login-site.ts'
import { type Answer, answerJson, answerWith, startRestApi } from '../../support/rest-api.ts'

const closing: (() => Promise<unknown>)[] = []
const kept = <T extends { close(): Promise<unknown> }>(opened: T): T => {
  closing.push(() => opened.close())
  return opened
}
afterAll(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const PNG = Buffer.from('89504e470d0a1a0a', 'hex')
const get = (types: readonly string[] = [], more: object = {}) => ({
  get: {
    ...more,
    responses: { 200: { description: '', content: Object.fromEntries(types.map(type => [type, { schema: {} }])) } },
  },
})
const JSON_TYPE = ['application/json']

/** The document of the API below. */
const documentOf = (more: object = {}) => ({
  openapi: '3.1.0',
  info: { title: 'Things', version: '2', description: 'An API of things.' },
  security: [{ key: [] }],
  components: { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } } },
  paths: {
    '/things/{id}': {
      get: {
        operationId: 'getThing',
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'integer' } },
          { name: 'deep', in: 'query', style: 'deepObject', schema: { type: 'object' } },
          { name: 'X-Trace', in: 'header', schema: { type: 'string' } },
          { name: 'X-Key', in: 'header', required: true, schema: { type: 'string' } },
          { name: 'sid', in: 'cookie', schema: { type: 'string' } },
        ],
        responses: { 200: { description: '', content: { 'application/json': { schema: { type: 'object' } } } } },
      },
    },
    '/list': get(JSON_TYPE),
    '/image': get(['image/png']),
    '/sound': get(['audio/wav']),
    '/file': get(['application/pdf']),
    '/text': get(['text/plain']),
    '/nothing': { delete: { responses: { 204: { description: '' } } } },
    '/failing': get(JSON_TYPE),
    '/denied': get(JSON_TYPE),
    '/page': get(JSON_TYPE),
    '/moved': get(JSON_TYPE),
    '/away': get(JSON_TYPE),
    '/stream': {
      post: { operationId: 'run', responses: { 200: { description: '', content: { 'text/event-stream': {} } } } },
    },
    '/silent': get(JSON_TYPE),
    ...more,
  },
})

const stream: Answer = (_, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('event: progress\ndata: {"progress": 1, "total": 3, "message": "begun"}\n\n')
  response.write('data: working\n\n')
  response.end('event: result\ndata: {"answer": 42}\n\ndata: [DONE]\n\n')
}

const answers: Record<string, Answer> = {
  '/openapi.json': answerJson(documentOf()),
  '/things/7': (hit, response) => answerWith('application/json', '{"id":9007199254740993}')(hit, response),
  '/list': answerJson([1, 2]),
  '/image': answerWith('image/png', PNG),
  '/sound': answerWith('audio/wav', PNG),
  '/file': answerWith('application/pdf', PNG),
  '/text': answerWith('text/plain; charset=iso-8859-1', Buffer.from('gr\xfcn', 'latin1')),
  '/nothing': (_, response) => void response.writeHead(204).end(),
  '/failing': answerJson({ error: 'no such thing', detail: 'x'.repeat(100_000) }, 422),
  '/denied': answerJson({ error: 'who?' }, 401),
  '/page': answerWith('text/html', '<html><title>Welcome</title></html>'),
  '/moved': (_, response) => void response.writeHead(302, { location: '/list' }).end(),
  '/away': (_, response) => void response.writeHead(307, { location: 'http://localhost:9/x' }).end(),
  '/stream': stream,
  '/silent': () => {},
}

describe('an API', () => {
  let api: Awaited<ReturnType<typeof startRestApi>>
  let daemon: Awaited<ReturnType<typeof startTestDaemon>>
  let client: TestClient

  beforeAll(async () => {
    api = kept(await startRestApi(answers))
    const entry = { openapi: `${api.origin}/openapi.json`, headers: { 'X-Key': 'k-1', Cookie: 'own=1' }, timeout: 1000 }
    daemon = kept(await startTestDaemon({ mcpServers: { things: { ...entry, api: { query: { tenant: 't&t' } } } } }))
    client = kept(await connectV2('SDK v2 modern', { url: `${daemon.origin}/mcp` }))
  })

  it('shows its operations as tools, without the parameters that the entry sets', async () => {
    const listed = await fetch(`${daemon.origin}/actions`).then(response => response.json() as Promise<unknown>)
    expect(await client.toolNames()).toContain('getThing')
    expect(JSON.stringify(listed)).not.toContain('X-Key')
    expect(client.serverName).toBeDefined()
  })

  it('is sent each argument in its place, with the credentials of the entry', async () => {
    const result = await client.call('getThing', { id: 7, deep: { a: { b: 1 } }, 'X-Trace': 't', sid: 's' })
    expect(textOf(result)).toBe('{"id":9007199254740993}')
    const [hit] = api.hitsOf('/things/7')
    expect(hit?.url).toBe('/things/7?deep%5Ba%5D%5Bb%5D=1&tenant=t%26t')
    expect(hit?.headers).toMatchObject({ 'x-trace': 't', 'x-key': 'k-1', cookie: 'own=1; sid=s' })
    await expect(client.call('getThing', { id: 'seven' })).rejects.toThrow('Argument "id" must be of type integer')
    await expect(client.call('getThing', { id: 7, more: 1 })).rejects.toThrow('Argument "more" is unknown')
  })

  it('answers in the content that fits its type', async () => {
    const content = async (name: string) => (await client.call(name)).content
    const base64 = PNG.toString('base64')
    expect(await content('get_list')).toEqual([{ type: 'text', text: '[1,2]' }])
    expect(await content('get_image')).toEqual([{ type: 'image', data: base64, mimeType: 'image/png' }])
    expect(await content('get_sound')).toEqual([{ type: 'audio', data: base64, mimeType: 'audio/wav' }])
    expect(await content('get_file')).toEqual([
      { type: 'resource', resource: { uri: `${api.origin}/file`, mimeType: 'application/pdf', blob: base64 } },
    ])
    expect(await content('get_text')).toEqual([{ type: 'text', text: 'grün' }])
    expect(await content('delete_nothing')).toEqual([{ type: 'text', text: 'HTTP 204 No Content, without a body' }])
    expect(await content('get_moved')).toEqual([{ type: 'text', text: '[1,2]' }])
  })

  it('has its failures shown as tool errors, with status and body', async () => {
    const failure = async (name: string): Promise<string> => {
      const result = await client.call(name)
      expect(result.isError).toBe(true)
      return textOf(result)
    }
    const failing = await failure('get_failing')
    expect(failing).toMatch(/^HTTP 422 Unprocessable Entity\n\{"error":"no such thing"/)
    expect(failing.length).toBeLessThan(20_000)
    expect(await failure('get_denied')).toBe(
      'HTTP 401 Unauthorized\n{"error":"who?"}\nThe entry of this server needs the header "X-Key" in "headers" (security scheme "key").',
    )
    expect(await failure('get_page')).toMatch(
      /^HTTP 200 OK with text\/html instead of JSON; is the address of the API right\?\n<html>/,
    )
    expect(await failure('get_away')).toMatch(/redirected to another origin \(http:\/\/localhost:9\)/)
    expect(await failure('get_silent')).toBe('Server "things" did not answer in time')
  })

  it('streams progress, then the result, to every client', async () => {
    for (const connect of [connectV1, (given: { url: string }) => connectV2('SDK v2 modern', given)]) {
      const other = kept(await connect({ url: `${daemon.origin}/mcp` }))
      const seen: unknown[] = []
      const result = await other.call('run', {}, { onProgress: progress => seen.push(progress) })
      expect(textOf(result)).toBe('working\n{"answer": 42}')
      expect(seen).toMatchObject([
        { progress: 1, total: 3, message: 'begun' },
        { progress: 2, message: 'working' },
        { progress: 3, message: '{"answer": 42}' },
        { progress: 4 },
      ])
    }
  })

  it('is used by the commands', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-openapi-'))
    closing.push(() => rm(folder, { recursive: true }))
    const file = join(folder, 'api.json')
    await writeFile(file, JSON.stringify({ mcpServers: { things: { openapi: `${api.origin}/openapi.json` } } }))
    const called = await runCli(['call', 'get_list', '--config', file])
    expect(JSON.parse(called.stdout)).toEqual([1, 2])
  })
})

describe('a document', () => {
  it('that cannot be used says why, and costs only its own tools', async () => {
    const large = Buffer.alloc(33 * 1024 * 1024, ' ')
    const api = kept(
      await startRestApi({
        '/wants-a-login': answerWith('text/plain', 'no', 401),
        '/broken': answerWith('application/json', '{"openapi": '),
        '/page': answerWith('text/html', '<html></html>'),
        '/large': answerWith('application/json', large),
        '/empty': answerJson({ openapi: '3.0.0', paths: {} }),
        '/elsewhere': answerJson({ ...documentOf(), servers: [{ url: 'https://other.test/v1' }] }),
        '/variables': answerJson({
          ...documentOf(),
          servers: [{ url: 'https://{region}.test', variables: { region: { enum: ['eu'], default: 'eu' } } }],
        }),
        '/down': answerWith('text/plain', '', 503),
        '/good': answerJson(documentOf()),
        '/list': answerJson([1]),
      }),
    )
    const at = (path: string, more: object = {}) => ({ openapi: `${api.origin}/${path}`, ...more })
    const servers = {
      unreachable: { openapi: 'http://127.0.0.1:1/openapi.json' },
      nofile: { openapi: '/nowhere/openapi.yaml' },
      login: at('wants-a-login', { oauth: false }),
      missing: at('missing'),
      broken: at('broken'),
      page: at('page'),
      large: at('large'),
      empty: at('empty'),
      none: at('good', { api: { include: ['tag:none'] } }),
      elsewhere: at('elsewhere', { headers: { Authorization: 'Bearer x' } }),
      variables: at('variables', { api: { variables: { region: 'mars' } } }),
      choice: at('variables', { api: { server: 'production' } }),
      down: at('down'),
      good: at('good'),
    }
    const snapshot = await loadConfig({ value: { mcpServers: servers }, env: {} })
    const { servers: reports } = await checkServers(snapshot, { log: SILENT, version: '1' })
    const states = new Map(reports.map(each => [each.name, each]))
    const reasons: Record<string, RegExp> = {
      unreachable: /did not answer: .*ECONNREFUSED.*its document http:\/\/127.0.0.1:1\/openapi.json could not be read/,
      nofile: /has a document that cannot be read: \/nowhere\/openapi.yaml: there is no such file/,
      login:
        /has a document that wants credentials \(HTTP 401 at .*\/wants-a-login\): add "headers", or save it as a file/,
      missing: /has a document that is not there \(HTTP 404 at .*is the URL right\?/,
      broken: /names a document that is neither JSON nor YAML/,
      page: /names a document that is a page \(HTML or XML\)/,
      large: /answered more than 32 MiB; its document .* could not be read/,
      empty: /has a document without operations/,
      none: /has a document without operations, or none that "include" and "exclude"/,
      elsewhere:
        /describes an API at https:\/\/other.test, which is not where its document is: .*"baseUrl": "https:\/\/other.test\/v1"/,
      variables: /cannot use "mars" for the variable "region" of its server; it is one of eu/,
      choice: /has no server "production" in its document; "api.server" is one of 0: https:\/\/\{region\}.test/,
      down: /has a document that is not available \(HTTP 503/,
    }
    for (const [name, reason] of Object.entries(reasons)) expect(states.get(name)?.reason, name).toMatch(reason)
    expect(states.get('good')).toMatchObject({ state: 'ready', transport: 'openapi', tools: 14 })
  })

  it('that changes changes the tools: a file when it is written, a URL when it is due', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-openapi-'))
    closing.push(() => rm(folder, { recursive: true }))
    const file = join(folder, 'openapi.yaml')
    const yaml = (path: string) =>
      `openapi: 3.1.0\npaths:\n  ${path}: { get: { parameters: [{ $ref: 'parts.yaml#/id' }], responses: {} } }\n  /out: { $ref: '../out.yaml' }\n`
    await writeFile(join(folder, 'parts.yaml'), 'id: { name: id, in: query, schema: { type: string } }')
    await writeFile(file, yaml('/one'))
    let [version, validated] = [1, 0]
    const api = kept(
      await startRestApi({
        '/one': answerJson({}),
        '/openapi.json': (hit, response) => {
          if (hit.headers['if-none-match'] === `"${version}"`) {
            validated++
            return void response.writeHead(304).end()
          }
          const document = { openapi: '3.0.0', paths: { [`/v${version}`]: get() } }
          answerWith('application/json', JSON.stringify(document), 200, { etag: `"${version}"` })(hit, response)
        },
      }),
    )
    const servers = {
      file: { openapi: file, api: { baseUrl: `${api.origin}/` } },
      url: { openapi: `${api.origin}/openapi.json`, api: { refreshMs: 50 } },
    }
    const daemon = kept(await startTestDaemon({ mcpServers: servers }))
    const client = kept(await connectV2('SDK v2 modern', { url: `${daemon.origin}/mcp` }))
    expect(await client.toolNames()).toEqual(['file__get_one', 'url__get_v1'])
    await client.call('file__get_one', { id: 'x' })
    expect(api.hitsOf('/one')[0]?.url).toBe('/one?id=x')
    await client.watch('dragoman://none')
    await writeFile(file, yaml('/two'))
    await client.notices.next('notifications/tools/list_changed')
    expect(await client.toolNames()).toContain('file__get_two')
    await expect.poll(() => validated).toBeGreaterThan(1)
    version = 2
    await client.notices.next('notifications/tools/list_changed')
    expect(await client.toolNames()).toEqual(['file__get_two', 'url__get_v2'])
    await writeFile(file, 'openapi: [')
    await expect(client.call('file__get_two')).resolves.toMatchObject({ isError: true }) // the tools stay
  })
})

describe('a login', () => {
  const URL_CAPABLE = { elicitation: { form: {}, url: {} } }

  it.each([
    ['by its metadata', true],
    ['by what the document declares', false],
  ])('that an API wants is found %s, asked of each user, and the call goes on', async (_, hasMetadata) => {
    const api = kept(await startRestApi({ '/api/list': answerJson([1, 2]) }))
    const site = kept(await startLoginSite({ upstream: `${api.origin}/api`, path: '/api', hasMetadata }))
    const folder = await mkdtemp(join(tmpdir(), 'dragoman-openapi-'))
    closing.push(() => rm(folder, { recursive: true }))
    const flow = { authorizationUrl: `${site.origin}/authorize`, tokenUrl: '/token', scopes: { read: '' } }
    const document = {
      ...documentOf(),
      security: [{ login: [] }],
      components: { securitySchemes: { login: { type: 'oauth2', flows: { authorizationCode: flow } } } },
    }
    await writeFile(join(folder, 'openapi.json'), JSON.stringify(document))
    const entry = {
      openapi: join(folder, 'openapi.json'),
      api: { baseUrl: site.url },
      ...(!hasMetadata && { oauth: { clientId: 'gateway', pkce: 'assumed' } }),
    }
    const daemon = kept(await startTestDaemon({ mcpServers: { things: entry } }))
    const answer = async ({ params }: Asked): Promise<Record<string, unknown>> => {
      await createBrowser('ada').open(String(params.url))
      return { action: 'accept' }
    }
    const client = kept(
      await connectV2('SDK v2 modern', { url: `${daemon.origin}/mcp`, capabilities: URL_CAPABLE, answer }),
    )
    expect(await client.toolNames()).toContain('get_list') // the document needs no login
    expect(textOf(await client.call('get_list'))).toBe('[1,2]')
    expect(client.asked).toHaveLength(1)
    expect(site.admitted.map(({ user }) => user)).toEqual(['ada'])
    const plain = kept(await connectV2('SDK v2 modern', { url: `${daemon.origin}/mcp`, capabilities: {} }))
    expect(textOf(await plain.call('get_list'))).toBe('[1,2]')
    const { stdout } = await runCli(['logout', 'things', '--data', daemon.data])
    expect(stdout).toContain('things')
    expect(textOf(await plain.call('get_list'))).toMatch(
      /Server "things" needs a login\. Open http:\S+\/oauth\/login\//,
    )
  })
})
