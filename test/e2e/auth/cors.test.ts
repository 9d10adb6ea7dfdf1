import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { modern, openStream, send } from '../../support/raw.ts'
import { type Created, type Guarded, startGuarded } from './guarded.ts'

const APP = 'https://app.example.com'
const FOREIGN = 'https://evil.example.com'

let gateway: Guarded
let token: Created
beforeAll(async () => {
  gateway = await startGuarded({ listen: { allowedOrigins: [APP] } })
  token = await gateway.create()
})
afterAll(() => gateway.close())

const preflight = (origin: string, wanted = 'authorization,content-type', more: object = {}) =>
  send(gateway.url, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': wanted,
      ...more,
    },
  })
const PING = modern(1, 'tools/call', { name: 'example-ping', arguments: {} })
const ping = (headers: object) => send(gateway.url, { body: PING.body, headers: { ...PING.headers, ...headers } })
const listOf = (header: unknown): string[] => String(header).toLowerCase().split(', ')

describe('a preflight', () => {
  it('from an allowed origin is answered without a token', async () => {
    const { status, headers, text } = await preflight(APP)
    expect(status).toBe(204)
    expect(text).toBe('')
    expect(headers['access-control-allow-origin']).toBe(APP)
    expect(headers.vary).toBe('Origin')
    expect(listOf(headers['access-control-allow-methods'])).toEqual(['get', 'post', 'patch', 'delete'])
    expect(headers['access-control-allow-credentials']).toBeUndefined()
    expect(headers['access-control-allow-private-network']).toBeUndefined()
  })

  it('allows what MCP clients send, parameters of tools included, and nothing else', async () => {
    const wanted = 'mcp-param-region, Mcp-Param-Tenant,x-evil, cookie'
    const { headers } = await preflight(APP, wanted)
    const allowed = listOf(headers['access-control-allow-headers'])
    for (const name of [
      'authorization',
      'content-type',
      'accept',
      'mcp-session-id',
      'mcp-protocol-version',
      'mcp-method',
      'mcp-name',
      'last-event-id',
      'mcp-param-region',
      'mcp-param-tenant',
    ])
      expect(allowed).toContain(name)
    expect(allowed).not.toContain('x-evil')
    expect(allowed).not.toContain('cookie')
  })

  it('from a page on this machine is answered', async () => {
    for (const origin of ['http://localhost:5173', gateway.origin])
      expect((await preflight(origin)).headers['access-control-allow-origin']).toBe(origin)
  })

  it('may ask for the local network', async () => {
    const { headers } = await preflight(APP, '', { 'access-control-request-private-network': 'true' })
    expect(headers['access-control-allow-private-network']).toBe('true')
  })

  it('from a foreign origin is refused', async () => {
    for (const origin of [FOREIGN, 'null', `${APP}.evil.com`, 'http://app.example.com']) {
      const { status, headers } = await preflight(origin)
      expect(status).toBe(403)
      expect(headers['access-control-allow-origin']).toBeUndefined()
    }
  })

  it('is nothing an operator’s probe answers', async () => {
    const { headers } = await send(`${gateway.origin}/healthz`, { method: 'GET', headers: { origin: APP } })
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('a page', () => {
  it('of an allowed origin may read answers and the headers it needs', async () => {
    const { status, headers } = await ping({ origin: APP, ...token.headers })
    expect(status).toBe(200)
    expect(headers['access-control-allow-origin']).toBe(APP)
    expect(headers.vary).toBe('Origin')
    expect(listOf(headers['access-control-expose-headers'])).toEqual([
      'mcp-session-id',
      'mcp-protocol-version',
      'www-authenticate',
      'retry-after',
      'location',
    ])
    expect(headers['access-control-allow-credentials']).toBeUndefined()
  })

  it('may read streams', async () => {
    const listen = modern(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    const headers = { ...listen.headers, ...token.headers, origin: APP }
    const stream = await openStream(gateway.url, { body: listen.body, headers })
    expect(stream.headers['content-type']).toBe('text/event-stream')
    expect(stream.headers['access-control-allow-origin']).toBe(APP)
    stream.close()
  })

  it('may read why it was refused', async () => {
    const { status, headers } = await ping({ origin: APP })
    expect(status).toBe(401)
    expect(headers['access-control-allow-origin']).toBe(APP)
    expect(headers['www-authenticate']).toBeDefined()
  })

  it('of a foreign origin is refused, even with a good token', async () => {
    const { status, headers } = await ping({ origin: FOREIGN, ...token.headers })
    expect(status).toBe(403)
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('whoever is no page', () => {
  it('gets none of these headers', async () => {
    const { status, headers } = await ping(token.headers)
    expect(status).toBe(200)
    expect(Object.keys(headers).filter(name => name.startsWith('access-control') || name === 'vary')).toEqual([])
  })

  it('may not use OPTIONS', async () => {
    expect((await send(gateway.url, { method: 'OPTIONS', headers: token.headers })).status).toBe(405)
  })
})

it('a gateway for all origins names the one that asks, never all', async () => {
  const open = await startGuarded({ listen: { allowedOrigins: ['*'] } })
  const { headers } = await send(open.url, { body: PING.body, headers: { ...PING.headers, origin: FOREIGN } })
  await open.close()
  expect(headers['access-control-allow-origin']).toBe(FOREIGN)
  expect(headers['access-control-allow-credentials']).toBeUndefined()
})

describe('a browser without an Origin', () => {
  const visit = (path: string, more: Record<string, string>) =>
    send(gateway.origin + path, { method: 'GET', headers: { ...token.headers, accept: 'text/html,*/*', ...more } })
  const LINK = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

  it.each(['cross-site', 'same-site'])('may open a page for people from a link of a %s page', async site => {
    for (const path of ['/', '/healthz', '/readyz', '/metrics'])
      expect((await visit(path, { ...LINK, 'sec-fetch-site': site })).status).toBe(200)
    for (const path of ['/actions/openapi.json', '/sse', '/mcp'])
      expect((await visit(path, { ...LINK, 'sec-fetch-site': site })).status).toBe(403)
  })

  it('may not be used by a page of another site', async () => {
    for (const more of [
      { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' },
      { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    ])
      for (const path of ['/', '/metrics', '/actions/openapi.json'])
        expect((await visit(path, { ...more, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await ping({ ...token.headers, 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await ping({ ...token.headers, 'sec-fetch-site': 'cross-site', origin: APP })).status).toBe(200)
  })
})

it.each([
  ['POST', '/actions/example-ping', 200],
  ['POST', '/actions/default/nope', 404],
  ['GET', '/actions/openapi.json', 200],
  ['GET', '/actions/default/openapi.json', 200],
  ['GET', '/actions', 404],
  ['GET', '/nowhere', 404],
  ['GET', '/mcp/nowhere', 404],
  ['PUT', '/mcp', 405],
  ['GET', '/', 200],
  ['GET', '/healthz', 200],
  ['GET', '/readyz', 200],
  ['GET', '/metrics', 200],
  ['POST', '/admin/plan', 403],
])('%s %s (%i) is neither kept nor sniffed', async (method, path, status) => {
  const reply = await send(gateway.origin + path, {
    method,
    headers: { ...token.headers, accept: '*/*' },
    ...(method === 'POST' && { body: {} }),
  })
  expect([reply.status, reply.headers['cache-control'], reply.headers['x-content-type-options']]).toEqual([
    status,
    'no-store',
    'nosniff',
  ])
})

it('a streamed answer of a tool is not kept either', async () => {
  const stream = await openStream(`${gateway.origin}/actions/test_tool_with_progress`, {
    headers: { ...token.headers, accept: 'text/event-stream' },
    body: {},
  })
  expect(stream.headers).toMatchObject({
    'cache-control': 'no-store, no-transform',
    'x-content-type-options': 'nosniff',
  })
  stream.close()
})
