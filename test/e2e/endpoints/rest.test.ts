import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStream, send } from '../../support/raw.ts'
import { type ScriptedServer, scriptedServer } from '../../support/scripted-server.ts'
import { start as startV1 } from '../../support/servers/sdk-v1-server.ts'
import { start as startV2 } from '../../support/servers/sdk-v2-server.ts'
import { startGuarded } from '../auth/guarded.ts'
import { type Configured, startConfigured } from './configured.ts'

let gateway: Configured
let silent: ScriptedServer
let peers: Awaited<ReturnType<typeof startV1>>[]
beforeAll(async () => {
  silent = await scriptedServer(() => {})
  peers = await Promise.all([startV1(), startV2()])
  const [legacy, modern] = peers.map(({ url }) => ({ url }))
  gateway = await startConfigured({
    mcpServers: {
      demo: { builtin: 'demo' },
      files: { builtin: 'files', root: '.' },
      gone: { url: 'http://127.0.0.1:1/mcp', era: 'modern' },
      silent: { url: silent.url, era: 'modern', timeout: 1000 },
      off: { builtin: 'demo', disabled: true },
      legacy,
      modern,
    },
  })
  await writeFile(join(gateway.folder, 'hello.txt'), 'hello\n')
})
afterAll(async () => {
  await gateway.close()
  await silent.close()
  for (const peer of peers) await peer.close()
})

const call = (path: string, body: object = {}, headers: Record<string, string> = { accept: '*/*' }) =>
  send(`${gateway.origin}/actions${path}`, { body, headers })

describe('tools as URLs', () => {
  test.each([
    '/example-echo',
    '/default/example-echo',
    '/demo/demo/example-echo',
    '/demo/demo%2Fexample-echo',
    '/example-echo?workspace=demo',
    '/demo/example-echo?workspace=demo',
  ])('%s answers with the result alone', async path => {
    const reply = await call(path, { message: 'hi' })
    expect([reply.status, JSON.parse(reply.text)]).toEqual([200, { content: [{ type: 'text', text: 'Echo: hi' }] }])
  })

  test.each([
    ['/example-echo?workspace=files', 404], // which has no such tool: the default workspace must not answer
    ['/example-echo?workspace=nobody', 404],
    ['/default/example-echo?workspace=demo', 400],
    ['/mcp', 404], // a tool that is not there, and no alias of a workspace called actions
  ])('%s gets %i, and no other workspace answers', async (path, status) => {
    const reply = await call(path, { message: 'hi' })
    expect([reply.status, reply.text]).toEqual([status, expect.stringContaining('error')])
  })

  test('give structured content, and read the files of the project', async () => {
    const { status, text } = await call('/files/read_file', { relative_path: 'hello.txt' })
    expect([status, JSON.parse(text).structuredContent.text]).toEqual([200, 'hello\n'])
  })

  test('need no headers that an MCP client would have to send', async () => {
    const reply = await call('/demo/test_x_mcp_header', { region: 'eu' })
    expect([reply.status, reply.text]).toEqual([200, expect.stringContaining('Region eu')])
  })

  test.each(['legacy', 'modern'])('reach remote servers, %s too', async workspace => {
    const reply = await call(`/${workspace}/test_simple_text`)
    expect([reply.status, JSON.parse(reply.text)]).toMatchObject([200, { content: [{ type: 'text' }] }])
    expect(reply.text).not.toContain('resultType')
    expect((await call(`/${workspace}/nope`)).status).toBe(404)
  })

  test.each<[string, object, number]>([
    ['/example-echo', {}, 422],
    ['/example-echo', { message: 3 }, 422],
    ['/nope', {}, 404],
    ['/nowhere/example-echo', {}, 404],
    ['/gone/x', {}, 502],
    ['/silent/x', {}, 504],
    ['/off/x', {}, 503],
    ['/demo/test_error_handling', {}, 200],
    ['/files/read_file', { relative_path: '../x' }, 200],
    ['/demo/test_elicitation', { message: 'Who?' }, 501],
  ])('%s with %j: %i', async (path, body, status) => {
    const reply = await call(path, body)
    expect([reply.status, reply.text]).toEqual([status, expect.any(String)])
    if (status === 200) expect(JSON.parse(reply.text)).toMatchObject({ isError: true })
    else expect(reply.json.error?.message).not.toBe('')
  })

  test('tell of progress to those who ask for events', async () => {
    const stream = await openStream(`${gateway.origin}/actions/demo/test_tool_with_progress`, {
      headers: { accept: 'text/event-stream' },
      body: {},
    })
    const events = (await stream.all()).map(({ event, json }) => [event, (json as { progress?: number }).progress])
    expect(events).toEqual([
      ['progress', 0],
      ['progress', 50],
      ['progress', 100],
      ['result', undefined],
    ])
  })

  test('answer pages in browsers', async () => {
    const origin = 'http://localhost:3000'
    const preflight = await send(`${gateway.origin}/actions/example-ping`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' },
    })
    expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([204, origin])
    const foreign = await call('/example-ping', {}, { origin: 'https://evil.test' })
    expect(foreign.status).toBe(403)
  })
})

describe('the description', () => {
  const describeAll = async (path: string, headers: Record<string, string> = {}, at = gateway.origin) => {
    const reply = await send(`${at}/actions${path}`, { method: 'GET', headers })
    return { status: reply.status, document: JSON.parse(reply.text) as Record<string, never> }
  }

  test('of everything is valid, with every tool of every server that answers', async () => {
    const { status, document } = await describeAll('/openapi.json')
    expect(status).toBe(200)
    const paths = Object.keys(document.paths ?? {})
    expect(paths).toEqual(
      expect.arrayContaining([
        '/actions/default/demo__example-echo',
        '/actions/files/list_dir',
        '/actions/legacy/test_simple_text',
        '/actions/modern/test_simple_text',
      ]),
    )
    expect(JSON.stringify(document.tags)).toMatch(/"gone","description":"Incomplete: Server \\"gone\\" did not answer/)
    const validator = new Validator()
    expect(await validator.validate(structuredClone(document))).toEqual({ valid: true })
    expect(() => validator.resolveRefs()).not.toThrow()
  })

  test('of one workspace has its tools only, and every path in it works', async () => {
    const { document } = await describeAll('/files/openapi.json')
    const paths = Object.keys(document.paths ?? {}).slice(0, -1)
    expect(Object.keys(document.paths ?? {}).at(-1)).toBe('/actions/files/tasks/{id}')
    expect(paths).toEqual(
      ['list_dir', 'read_file', 'find_file', 'search_for_pattern'].map(name => `/actions/files/${name}`),
    )
    for (const path of paths) expect((await send(gateway.origin + path, { body: {} })).status).toBe(422)
  })
})

describe('with tokens', () => {
  test('calls and descriptions are for those who have one, and show what it opens', async () => {
    const guarded = await startGuarded()
    try {
      const token = await guarded.create({ workspaces: ['other'] })
      const get = (path: string, headers = {}) => send(`${guarded.origin}${path}`, { method: 'GET', headers })
      const post = (path: string, headers = {}) => send(`${guarded.origin}${path}`, { body: {}, headers })
      for (const path of ['/actions/openapi.json', '/']) expect((await get(path)).status).toBe(401)
      expect((await post('/actions/example-ping')).status).toBe(401)
      expect((await post('/actions/example-ping', token.headers)).status).toBe(403)
      expect((await post('/actions/other/example-ping', token.headers)).status).toBe(200)
      expect((await get('/actions/default/openapi.json', token.headers)).status).toBe(403)
      const lines = guarded.lines.length
      const { tags } = JSON.parse((await get('/actions/openapi.json', token.headers)).text)
      expect(tags).toEqual([{ name: 'other' }])
      const { workspaces } = JSON.parse((await get('/', token.headers)).text)
      expect(workspaces.map(({ name }: { name: string }) => name)).toEqual(['other'])
      expect(guarded.lines.slice(lines)).toEqual([]) // looking is no attempt to come in
    } finally {
      await guarded.close()
    }
  })
})
