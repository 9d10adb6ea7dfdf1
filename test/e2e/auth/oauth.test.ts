import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { JWTPayload } from 'jose'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Auth, Issuer } from '../../../src/config/snapshot.ts'
import { startIssuer, type TestIssuer } from '../../support/issuer.ts'
import { modern, openSession, openStream, type RawReply, send } from '../../support/raw.ts'
import { startReplicas } from '../../support/replicas.ts'
import { type Guarded, openChannel, startGuarded } from './guarded.ts'

const SCOPES: Auth['scopes'] = new Map([
  ['mcp', {}],
  ['mcp:write', { tools: ['server/example-*'] }],
  ['mcp:admin', { tools: ['*/example-ping'] }],
])
const ALL = 'mcp mcp:write mcp:admin'

let issuer: TestIssuer
const closing: (() => unknown)[] = []
beforeEach(async () => {
  issuer = await startIssuer()
  closing.push(issuer.close)
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Options = NonNullable<Parameters<typeof startGuarded>[0]>
const start = async (entry: Partial<Issuer> = {}, options: Options = {}): Promise<Guarded> => {
  const gateway = await startGuarded({
    ...options,
    auth: { issuers: new Map([['corp', issuer.config(entry)]]), scopes: SCOPES, ...options.auth },
  })
  closing.push(gateway.close)
  return gateway
}

const bearer = async (claims: JWTPayload): Promise<{ authorization: string }> => ({
  authorization: `Bearer ${await issuer.sign(claims)}`,
})
/** A token that is valid for one to two seconds more: 30 are tolerated. */
const shortly = (): number => Math.floor(Date.now() / 1000) - 28

const closed = (response: IncomingMessage): Promise<unknown> => new Promise(resolve => response.on('close', resolve))

const PING = modern(1, 'tools/call', { name: 'example-ping', arguments: {} })
const LIST = modern(2, 'tools/list')
const ping = (url: string, headers: object = {}): Promise<RawReply> =>
  send(url, { body: PING.body, headers: { ...PING.headers, ...headers } })
const list = (url: string, headers: object = {}): Promise<RawReply> =>
  send(url, { body: LIST.body, headers: { ...LIST.headers, ...headers } })
const get = (url: string, headers: Record<string, string> = {}): Promise<RawReply> =>
  send(url, { method: 'GET', headers })
const challengeOf = ({ headers }: RawReply): string => String(headers['www-authenticate'])

describe('a client without a token', () => {
  it('is led to the authorization server', async () => {
    const { origin, url } = await start()
    const reply = await list(url)
    expect(reply.status).toBe(401)
    const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`
    expect(challengeOf(reply)).toBe(`Bearer realm="dragoman", resource_metadata="${metadata}", scope="mcp"`)
    expect((await get(metadata)).json).toEqual({
      resource: `${origin}/mcp`,
      authorization_servers: [issuer.url],
      scopes_supported: ['mcp:write', 'mcp:admin', 'mcp'],
      bearer_methods_supported: ['header'],
      resource_name: 'Dragoman',
    })
  })

  it('finds a document for the root and for every name, whether there is such a workspace or not', async () => {
    const { origin } = await start()
    const at = `${origin}/.well-known/oauth-protected-resource`
    for (const path of ['', '/mcp', '/mcp/other', '/mcp/no-such-workspace'])
      expect((await get(at + path)).json).toMatchObject({ resource: origin + path })
    for (const path of ['/x', '/mcp/a/b', '/sse']) expect((await get(at + path)).status).toBe(404)
    expect((await send(at, { body: {} })).status).toBe(405)
    expect((await get(at, { origin: 'http://localhost:1' })).headers['access-control-allow-origin']).toBeDefined()
  })

  it.each([
    ['/mcp/other', '/mcp/other'],
    ['/mcp/other/sse', '/mcp/other'],
    ['/other/mcp', ''],
    ['/mcp?workspace=other', ''],
    ['/sse', ''],
    ['/actions/x', ''],
  ])('of %s is given the document at "%s", which covers it', async (path, document) => {
    const { origin } = await start()
    const reply = await send(origin + path, { method: path.endsWith('sse') ? 'GET' : 'POST' })
    expect(challengeOf(reply)).toContain(
      `resource_metadata="${origin}/.well-known/oauth-protected-resource${document}"`,
    )
  })

  it('is given the loopback name that it uses, and never another host', async () => {
    const { origin, url } = await start()
    const { port } = new URL(origin)
    const byName = await list(url, { host: `localhost:${port}` })
    expect(challengeOf(byName)).toContain(`"http://localhost:${port}/.well-known/`)
    const published = await start({}, { listen: { publicUrl: 'https://mcp.example.com' } })
    for (const host of ['localhost', '127.0.0.1:1', 'mcp.example.com'])
      expect(challengeOf(await list(published.url, { host }))).toContain('"https://mcp.example.com/.well-known/')
    expect((await list(published.url, { host: 'evil.test' })).status).toBe(403)
  })

  it('is not led anywhere where only API tokens exist', async () => {
    const gateway = await startGuarded({ auth: { required: true } })
    closing.push(gateway.close)
    expect(challengeOf(await list(gateway.url))).toBe('Bearer realm="dragoman"')
    expect((await get(`${gateway.origin}/.well-known/oauth-protected-resource`)).status).toBe(404)
  })

  it('is led to the embedded server, if there is one', async () => {
    const { origin } = await start(
      {},
      { auth: { server: { signIn: ['token'], registration: 'open', clients: new Map() } } },
    )
    const { json } = await get(`${origin}/.well-known/oauth-protected-resource`)
    expect(json).toMatchObject({ authorization_servers: [origin] })
  })
})

describe('a token of an issuer', () => {
  it('opens what its grant says, and nothing else', async () => {
    const grants: Issuer['grants'] = [
      { where: { groups: ['dev'] }, workspaces: ['default'] },
      { where: { groups: ['ops'] }, workspaces: ['*'] },
    ]
    const { url, other, origin } = await start({ grants })
    const dev = await bearer({ aud: origin, scope: ALL, groups: ['dev'] })
    expect((await ping(url, dev)).json.result).toMatchObject({ content: [{ text: 'pong' }] })
    const denied = await ping(other, dev)
    expect([denied.status, denied.json.error?.message]).toEqual([
      403,
      'Forbidden: the token does not open workspace "other"',
    ])
    expect(denied.headers['www-authenticate']).toBeUndefined()
    expect((await ping(other, await bearer({ aud: origin, scope: ALL, groups: ['ops'] }))).status).toBe(200)
    const stranger = await ping(url, await bearer({ aud: origin, scope: ALL }))
    expect([stranger.status, stranger.json.error?.message]).toEqual([
      403,
      'Forbidden: No grant of the issuer "corp" fits the claims of the token',
    ])
  })

  it('F6: is bound to its audience: a workspace, or the whole gateway', async () => {
    const { url, other, origin } = await start()
    const statusOf = async (at: string, aud: string | string[]) =>
      (await ping(at, await bearer({ aud, scope: ALL }))).status
    expect(await statusOf(url, `${origin}/mcp`)).toBe(200)
    expect(await statusOf(url, `${origin}/`)).toBe(200)
    expect(await statusOf(other, `${origin}/mcp/other`)).toBe(200)
    expect(await statusOf(other, ['x', `${origin}/mcp/other/`])).toBe(200)
    expect(await statusOf(other, `${origin}/mcp`)).toBe(401)
    expect(await statusOf(url, `${origin}/mcp/other`)).toBe(401)
    expect(await statusOf(url, 'https://elsewhere.test/mcp')).toBe(401)
    expect(await statusOf(url, [])).toBe(401)
    const wrong = await ping(url, await bearer({ aud: 'https://elsewhere.test"', scope: ALL }))
    expect(challengeOf(wrong)).toContain(
      'error="invalid_token", error_description="The token is meant for another audience (https://elsewhere.test?)"',
    )
    expect(challengeOf(wrong)).toContain(`resource_metadata="${origin}/.well-known/oauth-protected-resource`)
  })

  it('may have a configured audience instead', async () => {
    const { url, origin } = await start({ audience: ['api://gateway'] })
    expect((await ping(url, await bearer({ aud: 'api://gateway', scope: ALL }))).status).toBe(200)
    expect((await ping(url, await bearer({ aud: origin, scope: ALL }))).status).toBe(401)
  })

  it('that is forged is rejected with a challenge, before the body is read', async () => {
    const { url, lines } = await start()
    const reply = await ping(url, { authorization: 'Bearer a.b.c' })
    expect(reply.status).toBe(401)
    expect(challengeOf(reply)).toMatch(/error="invalid_token".*resource_metadata=/)
    expect(lines.filter(({ message }) => message === 'request rejected')).toHaveLength(1)
  })

  it('cannot be checked while the issuer is away: the client keeps it', async () => {
    issuer.faults.metadata = (_, response) => response.writeHead(503).end()
    const { url, origin } = await start()
    const reply = await ping(url, await bearer({ aud: origin, scope: ALL }))
    expect([reply.status, reply.headers['retry-after']]).toEqual([503, '5'])
    expect(reply.json.error?.message).toContain('The token cannot be checked now: the issuer "corp" answered')
  })

  it('works beside API tokens, which hold all scopes', async () => {
    const gateway = await start()
    const { headers } = await gateway.create()
    expect((await ping(gateway.url, headers)).status).toBe(200)
    expect((await ping(gateway.url, { authorization: 'Bearer drg_unknown' })).status).toBe(401)
  })

  it('that has expired does not count as an attack: its client refreshes it', async () => {
    const { url, origin } = await start()
    const expired = await bearer({ aud: origin, exp: shortly() - 60 })
    for (let i = 0; i < 40; i++) expect((await ping(url, expired)).status).toBe(401)
  })

  it('F6: never reaches a server', async () => {
    const seen: string[] = []
    const server = createServer((request, response) => {
      seen.push(...request.rawHeaders)
      response.writeHead(404).end()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    closing.push(() => server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
    const entry = {
      kind: 'remote' as const,
      url,
      type: 'auto' as const,
      headers: {},
      era: 'auto' as const,
      timeoutMs: 1000,
    }
    const gateway = await start({}, { server: entry })
    await ping(gateway.url, await bearer({ aud: gateway.origin, scope: ALL }))
    await openSession(gateway.url, '2025-11-25', {}, await bearer({ aud: gateway.origin, scope: ALL }))
    expect(seen.length).toBeGreaterThan(0)
    expect(seen.filter(text => /authorization|bearer|eyJ/i.test(text))).toEqual([])
  })
})

describe('scopes', () => {
  it('that any access needs are missing from a token: 403 with all that is needed', async () => {
    const { url, origin } = await start()
    const reply = await list(url, await bearer({ aud: origin, scope: 'mcp:write openid' }))
    expect(reply.status).toBe(403)
    expect(challengeOf(reply)).toMatch(
      /^Bearer realm="dragoman", error="insufficient_scope", resource_metadata="[^"]+", scope="mcp:write mcp"$/,
    )
    expect(reply.json.error?.message).toBe('Forbidden: insufficient scope, the token lacks "mcp"')
  })

  const MISSING = {
    message: 'Forbidden: insufficient scope, the token lacks "mcp:write", "mcp:admin"',
    data: { reason: 'insufficient_scope', scopes: ['mcp:write', 'mcp:admin'] },
  }
  const CHALLENGE = /error="insufficient_scope", resource_metadata="[^"]+\/mcp", scope="mcp mcp:write mcp:admin"$/
  const CALL = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'example-ping', arguments: {} } }

  it.each([false, true])(
    'of a tool: every client sees it, and is told all that its call lacks (rules: %s)',
    async isRuled => {
      const grants: Issuer['grants'] = [{ where: {}, workspaces: ['*'], ...(isRuled && { policy: 'all' }) }]
      const policies = new Map([['all', { allow: {}, deny: { tools: ['x/y'] }, readOnly: false }]])
      const { url, origin } = await start({ grants }, { policies })
      const headers = await bearer({ aud: origin, scope: 'mcp' })
      expect((await list(url, headers)).json.result).toMatchObject({
        tools: expect.arrayContaining([expect.objectContaining({ name: 'example-ping' })]),
      })

      const called = await ping(url, headers)
      expect([called.status, called.json]).toMatchObject([403, { id: 1, error: MISSING }])
      expect(challengeOf(called)).toMatch(CHALLENGE)
      const prefixed = modern(1, 'tools/call', { name: 'server__example-ping', arguments: {} })
      expect((await send(url, { body: prefixed.body, headers: { ...prefixed.headers, ...headers } })).status).toBe(403)

      const rest = await send(`${origin}/actions/example-ping`, { body: {}, headers })
      expect([rest.status, rest.json.error]).toMatchObject([403, MISSING])
      expect(challengeOf(rest)).toContain('error="insufficient_scope"')

      for (const revision of ['2025-11-25', '2024-11-05']) {
        const session = await openSession(url, revision, {}, headers)
        const legacy = await send(url, { body: CALL, headers: { ...session.headers, ...headers } })
        expect([legacy.status, legacy.json]).toMatchObject([403, { id: 5, error: MISSING }])
        expect(challengeOf(legacy)).toMatch(CHALLENGE)
        const more = await bearer({ aud: origin, scope: ALL }) // step-up: the session goes on
        expect((await send(url, { body: CALL, headers: { ...session.headers, ...more } })).status).toBe(200)
      }
      const one = await send(`${origin}/message`, { body: CALL, headers })
      expect([one.status, one.json.error]).toMatchObject([403, MISSING])
    },
  )

  it('of a tool cannot be avoided by an extension method that names it', async () => {
    const { url, origin } = await start()
    const request = modern(1, 'example/call-tool', { tool: 'example-ping' })
    const headers = { ...request.headers, ...(await bearer({ aud: origin, scope: 'mcp' })) }
    const reply = await send(url, { body: request.body, headers })
    expect([reply.status, reply.json.error]).toMatchObject([403, MISSING])
    const large = modern(1, 'example/call-tool', { tool: 'example-ping', text: 'x'.repeat(300_000) })
    expect((await send(url, { body: large.body, headers: { ...large.headers, ...headers } })).status).toBe(403)
  })

  it('that are missing inside a batch or on a channel are an ordinary error', async () => {
    const { url, origin } = await start()
    const headers = await bearer({ aud: origin, scope: 'mcp' })
    const session = await openSession(url, '2025-03-26', {}, headers)
    const batch = await send(url, { body: [CALL, { ...CALL, id: 6 }], headers: { ...session.headers, ...headers } })
    expect([batch.status, JSON.parse(batch.text)]).toMatchObject([200, [{ error: MISSING }, { error: MISSING }]])
    const channel = await openChannel(origin, headers)
    const received = new Promise<string>(resolve =>
      channel.on('data', (chunk: Buffer) => chunk.includes('"id":5') && resolve(chunk.toString())),
    )
    const id = String(channel.headers['mcp-session-id'])
    expect((await send(`${origin}/messages/?session_id=${id}`, { body: CALL, headers })).status).toBe(202)
    expect(await received).toContain(JSON.stringify(MISSING.message))
    channel.destroy()
  })
})

describe('what was opened with a token', () => {
  it('that expires: standing streams end, and a new token of the principal continues the session', async () => {
    const { url, origin, gateway } = await start()
    const exp = shortly()
    const old = await bearer({ aud: origin, scope: ALL, exp })
    const session = await openSession(url, '2025-11-25', {}, old)
    const stream = await openStream(url, {
      method: 'GET',
      headers: { ...session.headers, ...old, accept: 'text/event-stream' },
    })
    const listen = modern(9, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    const listening = await openStream(url, { body: listen.body, headers: { ...listen.headers, ...old } })
    expect([stream.status, listening.status]).toEqual([200, 200])
    await Promise.all([closed(stream.response), closed(listening.response)])
    expect(Date.now()).toBeGreaterThanOrEqual((exp + 30) * 1000)
    expect((await ping(url, old)).status).toBe(401)
    const renewed = await bearer({ aud: origin, scope: ALL })
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    expect((await send(url, { body: call, headers: { ...session.headers, ...renewed } })).status).toBe(200)
    expect(gateway.load().sessions).toBe(1)
    const other = await bearer({ aud: origin, scope: ALL, sub: 'ben' })
    expect((await send(url, { body: call, headers: { ...session.headers, ...other } })).status).toBe(404)
  })

  it('goes on without a break if the client has sent a newer one in time', async () => {
    const { url, origin } = await start()
    const exp = shortly()
    const old = await bearer({ aud: origin, scope: ALL, exp })
    const session = await openSession(url, '2025-11-25', {}, old)
    const stream = await openStream(url, {
      method: 'GET',
      headers: { ...session.headers, ...old, accept: 'text/event-stream' },
    })
    const channel = await openChannel(origin, old)
    let isOpen = true
    stream.response.on('close', () => {
      isOpen = false
    })
    const renewed = await bearer({ aud: origin, scope: ALL })
    const body = { jsonrpc: '2.0', id: 1, method: 'ping' }
    await send(url, { body, headers: { ...session.headers, ...renewed } })
    await closed(channel) // nothing was sent for it
    expect(Date.now()).toBeGreaterThanOrEqual((exp + 30) * 1000)
    expect(isOpen).toBe(true)
    stream.close()
  })
})

describe('the operator', () => {
  it('may be a caller of an issuer, if nothing restricts them', async () => {
    const grants: Issuer['grants'] = [
      { where: { role: ['admin'] }, workspaces: ['*'] },
      { where: {}, workspaces: ['default'] },
    ]
    const { origin } = await start({ grants })
    const admin = await bearer({ aud: origin, scope: 'mcp', role: 'admin' })
    const user = await bearer({ aud: origin, scope: 'mcp' })
    for (const path of ['/metrics', '/admin/status']) {
      expect((await get(origin + path, admin)).status).toBe(200)
      expect((await get(origin + path, user)).status).toBe(403)
    }
    expect((await get(`${origin}/metrics`)).status).toBe(401)
    expect((await get(`${origin}/readyz`, admin)).json).toMatchObject({ servers: [{ name: 'server' }] })
    expect((await get(`${origin}/readyz`, user)).json).not.toHaveProperty('servers')
    expect((await send(`${origin}/admin/stop`, { headers: admin })).status).toBe(403)
  })

  it('and every other caller sees the workspaces that they may use', async () => {
    const { origin } = await start({ grants: [{ where: {}, workspaces: ['other'] }] })
    const headers = await bearer({ aud: origin, scope: 'mcp' })
    const index = (await get(`${origin}/`, headers)).json as { workspaces?: { name: string }[] }
    expect(index.workspaces?.map(({ name }) => name)).toEqual(['other'])
    expect(
      Object.keys(((await get(`${origin}/actions/openapi.json`, headers)).json as { paths: object }).paths),
    ).toContain('/actions/other/example-ping')
  })
})

it('replicas pass scopes and expiry on with the caller', async () => {
  const auth: Auth = { issuers: new Map([['corp', issuer.config({ audience: ['gw'] })]]), scopes: SCOPES }
  const { replicas, close } = await startReplicas({ size: 2, auth })
  closing.push(close)
  const [home, entry] = replicas.map(({ url }) => url)
  const exp = shortly()
  const few = await bearer({ aud: 'gw', scope: 'mcp mcp:write', exp })
  const session = await openSession(String(home), '2025-11-25', {}, few)
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'example-ping', arguments: {} } }
  const denied = await send(String(entry), { body: call, headers: { ...session.headers, ...few } })
  expect([denied.status, denied.json.error?.message]).toEqual([
    403,
    'Forbidden: insufficient scope, the token lacks "mcp:admin"',
  ])
  expect(challengeOf(denied)).toContain('error="insufficient_scope"')
  const stream = await openStream(String(entry), {
    method: 'GET',
    headers: { ...session.headers, ...few, accept: 'text/event-stream' },
  })
  expect(stream.status).toBe(200)
  await closed(stream.response)
  expect(Date.now()).toBeGreaterThanOrEqual((exp + 30) * 1000)
  const all = await bearer({ aud: 'gw', scope: ALL })
  expect((await send(String(entry), { body: call, headers: { ...session.headers, ...all } })).status).toBe(200)
})
