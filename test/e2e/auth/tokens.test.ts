import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { modern, openStream, type RawReply, send } from '../../support/raw.ts'
import { answerToHalf, type Guarded, openChannel, startGuarded } from './guarded.ts'

const gateways: Guarded[] = []
const start = async (options?: Parameters<typeof startGuarded>[0]): Promise<Guarded> => {
  const gateway = await startGuarded(options)
  gateways.push(gateway)
  return gateway
}
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close()
})

const PING = modern(1, 'tools/call', { name: 'example-ping', arguments: {} })
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

const ping = (url: string, headers: object = {}): Promise<RawReply> =>
  send(url, { body: PING.body, headers: { ...PING.headers, ...headers } })
const initialize = (url: string, headers: object = {}): Promise<RawReply> =>
  send(url, { body: INITIALIZE, headers: { ...headers } })

describe('a gateway without tokens', () => {
  it('on loopback asks nobody, until the first token is created', async () => {
    const gateway = await start()
    expect((await ping(gateway.url)).status).toBe(200)
    const { headers } = await gateway.create()
    expect((await ping(gateway.url)).status).toBe(401)
    expect((await ping(gateway.url, headers)).json.result).toMatchObject({ content: [{ text: 'pong' }] })
  })

  it('asks everybody where the configuration says so', async () => {
    const gateway = await start({ auth: { required: true } })
    expect((await ping(gateway.url)).status).toBe(401)
    const { headers } = await gateway.create()
    expect((await ping(gateway.url, headers)).status).toBe(200)
  })
})

describe('a gateway with tokens', () => {
  it('answers legacy callers without one with 401, -32001 and a challenge', async () => {
    const gateway = await start()
    await gateway.create()
    const reply = await initialize(gateway.url)
    expect(reply.status).toBe(401)
    expect(reply.headers['www-authenticate']).toBe('Bearer realm="dragoman"')
    expect(JSON.parse(reply.text)).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32001, message: expect.stringContaining('Authorization: Bearer') },
    })
  })

  it('answers modern ones with -32603', async () => {
    const gateway = await start()
    await gateway.create()
    const reply = await ping(gateway.url)
    expect(reply.status).toBe(401)
    expect(reply.headers['www-authenticate']).toBe('Bearer realm="dragoman"')
    expect(reply.json.error?.code).toBe(-32603)
  })

  it.each([
    ['GET', '/mcp'],
    ['DELETE', '/mcp'],
    ['GET', '/mcp/other'],
    ['GET', '/sse'],
    ['GET', '/sse?workspace=other'],
    ['GET', '/mcp/other/sse'],
    ['POST', '/messages/?session_id=x'],
    ['POST', '/messages?sessionId=x'],
    ['POST', '/message?session_id=x'],
    ['POST', '/message'],
    ['POST', '/actions/example-ping'],
    ['POST', '/actions/other/example-ping'],
    ['POST', '/actions/other/server/example-ping'],
    ['GET', '/actions/openapi.json'],
    ['GET', '/'],
  ])('asks at every door: %s %s', async (method, path) => {
    const gateway = await start({ auth: { required: true } })
    const { status, headers } = await send(gateway.origin + path, { method, headers: { accept: '*/*' } })
    expect(status).toBe(401)
    expect(headers['www-authenticate']).toBe('Bearer realm="dragoman"')
  })

  it('answers before it has the body', async () => {
    const gateway = await start()
    await gateway.create()
    expect(await answerToHalf(gateway.gateway.port)).toMatch(/^HTTP\/1\.1 401 /)
  })

  it('refuses a wrong token, and an expired one', async () => {
    const gateway = await start()
    await gateway.create()
    const wrong = await initialize(gateway.url, { authorization: `Bearer drg_${'A'.repeat(43)}` })
    expect(wrong.status).toBe(401)
    expect(wrong.headers['www-authenticate']).toMatch(/error="invalid_token".*unknown or revoked/)
    const { headers } = await gateway.create({ expires: new Date(Date.now() - 1000).toISOString() })
    const expired = await initialize(gateway.url, headers)
    expect(expired.status).toBe(401)
    expect(expired.headers['www-authenticate']).toMatch(/error="invalid_token".*has expired/)
  })

  it('tells an address with many wrong tokens to wait, logs them once, and still takes a good token', async () => {
    const gateway = await start()
    const { headers } = await gateway.create()
    const wrong = { authorization: `Bearer drg_${'A'.repeat(43)}` }
    const replies = await Promise.all(Array.from({ length: 40 }, () => initialize(gateway.url, wrong)))
    const statuses = replies.map(({ status }) => status)
    expect([
      statuses.filter(status => status === 401).length,
      statuses.filter(status => status === 429).length,
    ]).toEqual([30, 10])
    const limited = replies.find(({ status }) => status === 429)
    expect(Number(limited?.headers['retry-after'])).toBeGreaterThan(0)
    expect(Number(limited?.headers['retry-after'])).toBeLessThanOrEqual(60)
    expect(limited?.json.error).toMatchObject({ code: -32002, data: { retryAfterMs: expect.any(Number) } })
    expect(gateway.lines.filter(({ fields }) => fields.security)).toHaveLength(1)
    expect((await ping(gateway.url, headers)).status).toBe(200) // behind a proxy everybody has its address
    expect((await initialize(gateway.url)).status).toBe(401) // no token is no failure
  })

  it('refuses a revoked token at once, and the others still count', async () => {
    const gateway = await start()
    const [one, two] = [await gateway.create(), await gateway.create()]
    expect((await ping(gateway.url, one.headers)).status).toBe(200)
    await gateway.revoke(one)
    const reply = await ping(gateway.url, one.headers)
    expect(reply.status).toBe(401)
    expect(reply.headers['www-authenticate']).toContain('error="invalid_token"')
    expect((await ping(gateway.url, two.headers)).status).toBe(200)
  })

  it('does not open when the last token is revoked', async () => {
    const gateway = await start()
    await gateway.revoke(await gateway.create())
    expect((await ping(gateway.url)).status).toBe(401)
  })

  it('ends the open streams of a token that is revoked, and leaves those of others alone', async () => {
    const gateway = await start()
    const [one, two] = [await gateway.create(), await gateway.create()]
    const listen = modern(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    const open = (headers: object) =>
      openStream(gateway.url, { body: listen.body, headers: { ...listen.headers, ...headers } })
    const [streamOfOne, streamOfTwo] = [await open(one.headers), await open(two.headers)]
    expect((await streamOfOne.next())?.json.method).toBe('notifications/subscriptions/acknowledged')
    expect((await streamOfTwo.next())?.json.method).toBe('notifications/subscriptions/acknowledged')
    await gateway.revoke(one)
    expect(await streamOfOne.next()).toBeUndefined()
    expect(streamOfTwo.response.destroyed).toBe(false)
    streamOfTwo.close()
  })

  it('ends the open streams of a token when it expires', async () => {
    const gateway = await start()
    const { headers } = await gateway.create({ expires: new Date(Date.now() + 1500).toISOString() })
    const listen = modern(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    const stream = await openStream(gateway.url, { body: listen.body, headers: { ...listen.headers, ...headers } })
    expect((await stream.next())?.json.method).toBe('notifications/subscriptions/acknowledged')
    expect(await stream.next()).toBeUndefined()
    expect((await ping(gateway.url, headers)).status).toBe(401)
  })

  it('refuses a token of another workspace with 403', async () => {
    const gateway = await start()
    const { headers } = await gateway.create({ workspaces: ['other'] })
    expect((await ping(gateway.other, headers)).status).toBe(200)
    const reply = await initialize(gateway.url, headers)
    expect(reply.status).toBe(403)
    expect(reply.headers['www-authenticate']).toContain('error="insufficient_scope", scope="default"')
    expect(reply.json.error).toMatchObject({ code: -32001, message: expect.stringContaining('insufficient scope') })
  })

  it('hides the session of one principal from another, with a line about it, and shows it to its own', async () => {
    const gateway = await start()
    const one = await gateway.create({ principal: 'ada' })
    const again = await gateway.create({ principal: 'ada' })
    const two = await gateway.create({ principal: 'bob' })
    const { headers } = await initialize(gateway.url, one.headers)
    const session = { 'mcp-session-id': String(headers['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' }
    const body = { jsonrpc: '2.0', id: 2, method: 'tools/list' }
    const stolen = await send(gateway.url, { body, headers: { ...session, ...two.headers } })
    expect(stolen.status).toBe(404)
    expect(gateway.lines.filter(({ fields }) => fields.security)).toMatchObject([
      { level: 'warn', fields: { principal: 'bob', owner: 'ada' } },
    ])
    expect((await send(gateway.url, { body, headers: { ...session, ...again.headers } })).status).toBe(200)
    expect((await send(gateway.url, { body, headers: session })).status).toBe(401)
  })

  it('hides the channel of one principal from another, with a line about it', async () => {
    const gateway = await start()
    const [one, two] = [await gateway.create({ principal: 'ada' }), await gateway.create({ principal: 'bob' })]
    const response = await openChannel(gateway.origin, one.headers)
    const id = String(response.headers['mcp-session-id'])
    const post = (headers: object) =>
      send(`${gateway.origin}/messages/?session_id=${id}`, { body: INITIALIZE, headers: { ...headers } })
    expect((await post(two.headers)).status).toBe(404)
    expect(gateway.lines.filter(({ fields }) => fields.security)).toMatchObject([
      { level: 'warn', fields: { principal: 'bob', owner: 'ada' } },
    ])
    expect((await post({})).status).toBe(401)
    expect((await post(one.headers)).status).toBe(202)
    response.destroy()
  })

  it('ends a channel whose token is revoked', async () => {
    const gateway = await start()
    const one = await gateway.create()
    const response = await openChannel(gateway.origin, one.headers)
    const closed = new Promise(resolve => response.once('close', resolve))
    await gateway.revoke(one)
    await closed
  })

  it('hides the parked question of one principal from another', async () => {
    const gateway = await start()
    const [one, two] = [await gateway.create(), await gateway.create()]
    const capabilities = { elicitation: { form: {} } }
    const params = { name: 'test_elicitation', arguments: { message: 'Who?' } }
    const ask = modern(1, 'tools/call', params, { capabilities })
    const asked = await send(gateway.url, { body: ask.body, headers: { ...ask.headers, ...one.headers } })
    const result = asked.json.result as { resultType: string; requestState: string; inputRequests: object }
    expect(result.resultType).toBe('input_required')
    const [key = ''] = Object.keys(result.inputRequests)
    const inputResponses = { [key]: { action: 'accept', content: { username: 'ada', email: 'a@b.test' } } }
    const retry = modern(
      2,
      'tools/call',
      { ...params, requestState: result.requestState, inputResponses },
      { capabilities },
    )
    const stolen = await send(gateway.url, { body: retry.body, headers: { ...retry.headers, ...two.headers } })
    expect(stolen.json.error?.code).toBe(-32602)
    const own = await send(gateway.url, { body: retry.body, headers: { ...retry.headers, ...one.headers } })
    expect(own.json.result).toMatchObject({ resultType: 'complete' })
  })

  it('takes the token of its own process', async () => {
    const gateway = await start({ auth: { required: true } })
    const headers = { authorization: `Bearer ${gateway.gateway.localSecret}` }
    expect((await ping(gateway.url, headers)).status).toBe(200)
    expect((await ping(gateway.other, headers)).status).toBe(200)
  })

  it('writes down when a token was used last, beside the tokens', async () => {
    const gateway = await start()
    const { id, headers } = await gateway.create()
    const before = await readFile(join(gateway.data, 'tokens.json'), 'utf8')
    const started = Date.now()
    await ping(gateway.url, headers)
    await gateway.gateway.close()
    const used = JSON.parse(await readFile(join(gateway.data, 'token-use.json'), 'utf8')) as Record<string, string>
    expect(Object.keys(used)).toEqual([id])
    expect(Date.parse(used[id] ?? '')).toBeGreaterThanOrEqual(started)
    expect(await readFile(join(gateway.data, 'tokens.json'), 'utf8')).toBe(before)
  })

  it('leaves the probe of its health open', async () => {
    const gateway = await start({ auth: { required: true } })
    expect((await send(`${gateway.origin}/healthz`, { method: 'GET' })).status).toBe(200)
  })

  it('logs no token, whatever is sent', async () => {
    const gateway = await start()
    const tokens = [await gateway.create(), await gateway.create({ workspaces: [] })]
    const wrong = `Bearer drg_${'Z'.repeat(43)}`
    for (const authorization of [
      ...tokens.map(({ headers }) => headers.authorization),
      wrong,
      'Basic c2VjcmV0czpvZg==',
    ])
      for (const url of [gateway.url, gateway.other, `${gateway.origin}/mcp/none`, gateway.origin])
        await send(url, { body: INITIALIZE, headers: { authorization } })
    const text = JSON.stringify(gateway.lines)
    expect(text).toContain('request rejected')
    expect(text).not.toMatch(/drg_|c2VjcmV0/)
  })
})

describe('the token of a client', () => {
  it('never reaches a server', async () => {
    const seen: string[] = []
    const server = createServer((request, response) => {
      seen.push(JSON.stringify(request.rawHeaders))
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const gateway = await start({
      server: {
        kind: 'remote',
        url: `http://127.0.0.1:${port}/mcp`,
        type: 'auto',
        headers: {},
        era: 'modern',
        timeoutMs: 5000,
      },
    })
    const { headers } = await gateway.create()
    await ping(gateway.url, headers)
    await initialize(gateway.url, headers)
    server.close()
    expect(seen.length).toBeGreaterThan(0)
    expect(seen.join()).not.toMatch(/drg_|authorization/i)
  })
})
