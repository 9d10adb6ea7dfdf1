import { afterEach, describe, expect, it, vi } from 'vitest'
import {
  answerOk,
  type ChannelHabits,
  type ChannelScript,
  type ChannelServer,
  channelServer,
  connectTo,
  ENDPOINT,
  type Stream,
} from '../../../test/support/channel-server.ts'
import {
  type Arrived,
  callerOf,
  exchangeWith,
  failure,
  notice,
  request,
  result,
  scriptedServer,
  tokenOf,
} from '../../../test/support/scripted-server.ts'
import type { RemoteServer } from '../../config/snapshot.ts'
import { Json } from '../../wire/json/json.ts'
import type { RemoteOptions } from '../connect-remote.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const dedicated = callerOf({
  revision: '2025-11-25',
  session: 'client-1',
  info: Json.of({ name: 'client', version: '3' }),
  capabilities: Json.of({ elicitation: {} }),
})

const connect = async (
  script: ChannelScript = answerOk,
  habits: ChannelHabits = {},
  config: Partial<RemoteServer> = {},
  options: Partial<RemoteOptions> = {},
) => {
  const server = await channelServer(script, habits)
  const upstream = connectTo(server, closing, config, { endpointMs: 300, ...options })
  return { server, upstream }
}

/** A client session on a server whose channel the test writes to. */
const talking = async (script: ChannelScript = silent, options: Partial<RemoteOptions> = {}, habits = {}) => {
  const { server, upstream } = await connect(script, habits, { type: 'sse' }, options)
  const peer = await upstream.open(dedicated)
  return { server, upstream, peer, channel: server.streams[0] as Stream }
}

const silent: ChannelScript = (_, __, response) => void response.writeHead(202).end()

const idOf = async (server: ChannelServer, method: string, count = 1) => (await server.arrived(method, count)).body.id

/** What the client posted as answer to a question of the server. */
const answerQuestion = async (server: ChannelServer, id: unknown) => {
  const isAnswer = ({ body }: Arrived) => body.id === id && body.method === undefined && body.jsonrpc === '2.0'
  await server.until(() => server.arrivals.some(isAnswer), `the answer to ${id}`)
  return server.arrivals.find(isAnswer)?.body
}

const steps = (server: ChannelServer) =>
  server.arrivals.map(({ method, url, body }) => `${method} ${url} ${body.method ?? ''}`.trim())

describe('detecting the transport', () => {
  it('tries Streamable HTTP first, and remembers that the server has channels', async () => {
    const { server, upstream } = await connect()
    const peer = await upstream.open(dedicated)
    expect(peer).toMatchObject({ revision: '2024-11-05', asks: true, correlates: false })
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: true })
    expect(steps(server)).toEqual([
      'POST /sse server/discover',
      'POST /sse initialize',
      'GET /sse',
      'POST /messages/?session_id=1 initialize',
      'POST /messages/?session_id=1 notifications/initialized',
      'POST /messages/?session_id=1 tools/list',
    ])
    await upstream.open({ ...dedicated, session: 'client-2' })
    expect(steps(server).slice(6)).toEqual([
      'GET /sse',
      'POST /messages/?session_id=1 initialize',
      'POST /messages/?session_id=1 notifications/initialized',
    ])
  })

  it('opens the channel at once where the configuration says so', async () => {
    const { server, upstream } = await connect(answerOk, {}, { type: 'sse' })
    await upstream.open(dedicated)
    expect(steps(server)[0]).toBe('GET /sse')
    expect(server.of('GET')[0]?.headers).toMatchObject({ accept: 'text/event-stream' })
  })

  it.each([
    ['404 and a page', 404],
    ['400', 400],
    ['405', 405],
    ['422', 422],
    ['200 and a page', 200],
  ])('goes on after a POST answered %s', async (_, status) => {
    const refuse: ChannelHabits['refuse'] = response => void response.writeHead(status).end('<html>')
    const { upstream } = await connect(answerOk, { refuse })
    expect((await upstream.open(dedicated)).revision).toBe('2024-11-05')
  })

  it('recognizes a server that opens a channel for a POST too', async () => {
    const refuse: ChannelHabits['refuse'] = response => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('event: endpoint\ndata: /messages/?session_id=other\n\n')
    }
    const { server, upstream } = await connect(answerOk, { refuse })
    expect((await upstream.open(dedicated)).revision).toBe('2024-11-05')
    await server.until(() => server.of('POST').every(({ url, isGone }) => url !== '/sse' || isGone), 'both closed')
  })

  it('follows a server that had a channel and has been upgraded', async () => {
    const { server, upstream } = await connect(answerOk, {}, { era: 'legacy' })
    await upstream.open(dedicated)
    server.become(({ method, body }, response) => {
      if (method !== 'POST') return void response.writeHead(405).end()
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(
        JSON.stringify(
          result(body.id, { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'n', version: '1' } }),
        ),
      )
    })
    expect((await upstream.open({ ...dedicated, session: 'client-2' })).revision).toBe('2025-11-25')
  })

  it('reports the failure of the POST if there is no channel either', async () => {
    const server = await scriptedServer((_, response) => void response.writeHead(404).end())
    const upstream = connectTo(server, closing)
    await expect(upstream.open(dedicated)).rejects.toMatchObject({
      reason: 'upstream_protocol',
      message: 'Server "far" answered HTTP 404 (is the URL right?)',
    })
  })

  it('reports the refusal of a server whose GET stream merely stays silent', async () => {
    const refuse: ChannelHabits['refuse'] = response => {
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(JSON.stringify(failure(null, -32602, 'Unsupported client')))
    }
    const { upstream } = await connect(answerOk, { refuse, greeting: () => ': hello\n\n' }, {}, { endpointMs: 50 })
    await expect(upstream.open(dedicated)).rejects.toThrow('refused initialize: Unsupported client')
  })

  it.each([401, 403, 503])('takes no %s for evidence of the transport', async status => {
    const refuse: ChannelHabits['refuse'] = response => void response.writeHead(status).end()
    const { server, upstream } = await connect(answerOk, { refuse })
    await expect(upstream.open(dedicated)).rejects.toThrow(`HTTP ${status}`)
    expect(server.of('GET')).toHaveLength(0)
  })
})

describe('the endpoint', () => {
  it.each<[string, (origin: string) => string, string]>([
    ['a path', () => ENDPOINT, '/messages/?session_id=1'],
    ['another spelling', () => 'event: endpoint\ndata: /messages?sessionId=1\n\n', '/messages?sessionId=1'],
    ['a whole URL', origin => `event: endpoint\ndata: ${origin}/messages/?session_id=1\n\n`, '/messages/?session_id=1'],
    ['bare data', origin => `data: ${origin}/messages/?session_id=1\n\n`, '/messages/?session_id=1'],
    ['after other events', () => `: hi\n\nevent: ping\ndata: \n\nretry: 5\n\n${ENDPOINT}`, '/messages/?session_id=1'],
  ])('may be %s', async (_, greeting, expected) => {
    const { server, upstream } = await connect(answerOk, { greeting }, { type: 'sse' })
    const peer = await upstream.open(dedicated)
    await exchangeWith(peer, 'tools/list').result()
    expect(new Set(server.of('POST').map(({ url }) => url))).toEqual(new Set([expected]))
  })

  it.each([307, 308])('is looked for behind a %s, on GET and POST', async status => {
    const { server, upstream } = await connect(
      (arrived, channel, response) => {
        if (arrived.url.startsWith('/messages/'))
          return void response.writeHead(status, { location: arrived.url.replace('/messages/', '/messages') }).end()
        answerOk(arrived, channel, response)
      },
      {
        path: '/old/sse',
        greeting: () => 'event: endpoint\ndata: ../messages/?session_id=1\n\n',
        get: ({ url }, response) => {
          if (url === '/old/sse') response.writeHead(status, { location: '/new/sse' }).end()
          return url === '/old/sse'
        },
      },
      { type: 'sse', headers: { authorization: 'Bearer s3cret' } },
    )
    const peer = await upstream.open(dedicated)
    for (let i = 0; i < 2; i++) expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: true })
    const called = server.of('tools/list').map(({ url }) => url)
    const [there, here] = ['/messages/?session_id=1', '/messages?session_id=1']
    expect(called).toEqual(status === 308 ? [here, here] : [there, here, there, here])
    expect(server.of('tools/list').every(({ headers }) => headers.authorization === 'Bearer s3cret')).toBe(true)
  })

  it('gets no credentials where a redirect led to another origin', async () => {
    const { server } = await connect()
    const door = await scriptedServer(
      (_, response) => void response.writeHead(307, { location: `${server.url}` }).end(),
    )
    const headers = { authorization: 'Bearer s3cret' }
    const upstream = connectTo({ ...door, url: `${door.origin}/sse` }, closing, {
      type: 'sse',
      headers,
      allowCrossOriginRedirect: true,
    })
    await exchangeWith(await upstream.open(dedicated), 'tools/list').result()
    expect(door.of('GET')[0]?.headers.authorization).toBe('Bearer s3cret')
    expect(server.of('tools/list')[0]?.url).toBe('/messages/?session_id=1')
    expect(server.arrivals.filter(({ headers }) => 'authorization' in headers)).toEqual([])
  })

  it('is refused on another origin, and nothing is sent there', async () => {
    const other = await scriptedServer((_, response) => void response.writeHead(202).end())
    closing.push(other.close)
    const greeting = () => `event: endpoint\ndata: ${other.origin}/messages/?session_id=1\n\n`
    const { server, upstream } = await connect(answerOk, { greeting }, { type: 'sse' })
    await expect(upstream.open(dedicated)).rejects.toMatchObject({
      reason: 'upstream_protocol',
      message: expect.stringContaining(`named an endpoint on another origin (${other.origin})`),
    })
    expect(other.arrivals).toHaveLength(0)
    await server.until(() => server.of('GET').every(({ isGone }) => isGone), 'the channel to be closed')
  })

  it('may be on another origin where the configuration allows it, and gets no credentials there', async () => {
    const other = await scriptedServer(({ body }, response) => {
      response.writeHead(202).end()
      if (body.id === undefined) return
      const introduction = { protocolVersion: '2024-11-05', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
      server.streams[0]?.event(result(body.id, introduction))
    })
    closing.push(other.close)
    const greeting = () => `event: endpoint\ndata: ${other.origin}/messages/\n\n`
    const credentials = { authorization: 'Bearer s3cret', 'x-key': 'k' }
    const config = { type: 'sse', allowCrossOriginEndpoint: true, headers: credentials } as const
    const { server, upstream } = await connect(answerOk, { greeting }, config)
    await upstream.open(dedicated)
    expect(server.of('GET')[0]?.headers).toMatchObject(credentials)
    expect(other.arrivals.map(({ headers }) => Object.keys(credentials).some(name => name in headers))).toEqual([
      false,
      false,
    ])
  })

  it('is never the port of the gateway, even if the configuration allows other origins', async () => {
    const own = await scriptedServer((_, response) => void response.writeHead(202).end())
    closing.push(own.close)
    const greeting = () => `event: endpoint\ndata: http://localhost:${new URL(own.origin).port}/mcp\n\n`
    const server = await channelServer(answerOk, { greeting })
    const config = { type: 'sse', allowCrossOriginEndpoint: true } as const
    const upstream = connectTo(server, closing, config, { ownPort: () => Number(new URL(own.origin).port) })
    await expect(upstream.open(dedicated)).rejects.toMatchObject({
      reason: 'upstream_redirect',
      message: 'Server "far" pointed to the address of this gateway itself',
    })
    expect(own.arrivals).toHaveLength(0)
  })

  it('that comes too late is not waited for', async () => {
    const { server, upstream } = await connect(answerOk, { greeting: () => ': hello\n\n' }, { type: 'sse' })
    await expect(upstream.open(dedicated)).rejects.toMatchObject({
      reason: 'upstream_timeout',
      message: 'Server "far" opened an event stream but named no endpoint within 0.3 s',
    })
    await server.until(() => server.of('GET').every(({ isGone }) => isGone), 'the channel to be closed')
  })

  it.each<[string, ChannelHabits['get'], string, string]>([
    ['a stream that ends', (_, response) => !!end(response), 'upstream_stream_lost', 'closed its event stream'],
    ['a page', (_, response) => !!page(response), 'upstream_protocol', 'offers text/html instead of an event stream'],
    ['401', (_, response) => !!response.writeHead(401).end(), 'upstream_auth', 'refused our credentials (HTTP 401)'],
    ['503', (_, response) => !!response.writeHead(503).end(), 'upstream_unreachable', 'is not available (HTTP 503)'],
    ['404', (_, response) => !!response.writeHead(404).end(), 'upstream_protocol', 'answered HTTP 404'],
  ])('cannot be learnt from %s', async (_, get, reason, text) => {
    const { upstream } = await connect(answerOk, get ? { get } : {}, { type: 'sse' })
    const opening = upstream.open(dedicated)
    await expect(opening).rejects.toMatchObject({ reason, message: expect.stringContaining(text) })
  })

  it('cannot be learnt from an error event', async () => {
    const greeting = () => 'event: error\ndata: {"code":-32603,"message":"Internal error"}\n\n'
    const { upstream } = await connect(answerOk, { greeting }, { type: 'sse' })
    await expect(upstream.open(dedicated)).rejects.toThrow('reported an error instead of the endpoint')
  })
})

const end = (response: Parameters<NonNullable<ChannelHabits['get']>>[1]) =>
  response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': bye\n\n')
const page = (response: Parameters<NonNullable<ChannelHabits['get']>>[1]) =>
  response.writeHead(200, { 'content-type': 'text/html' }).write('<html>')

describe('the handshake', () => {
  it('is made as the caller, and may agree on any legacy revision', async () => {
    for (const [version, header] of [
      ['2024-11-05', undefined],
      ['2025-03-26', undefined],
      ['2025-06-18', '2025-06-18'],
      ['2025-11-25', '2025-11-25'],
    ] as const) {
      const { server, upstream } = await connect(answerOk, { version })
      const peer = await upstream.open(dedicated)
      expect(peer.revision).toBe(version)
      await exchangeWith(peer, 'tools/list').result()
      expect(server.of('tools/list')[0]?.headers['mcp-protocol-version']).toBe(header)
      expect(server.of('initialize').at(-1)?.body.params).toEqual({
        protocolVersion: '2025-11-25',
        capabilities: { elicitation: {} },
        clientInfo: { name: 'client', version: '3' },
      })
    }
  })

  it('is skipped if the server refuses it and answers other requests', async () => {
    const server = await scriptedServer(({ method, body }, response) => {
      if (method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        return void response.write(ENDPOINT)
      }
      const channel = server.of('GET').at(-1)?.response
      response.writeHead(202).end()
      const answer =
        body.method === 'initialize' ? failure(body.id, -32600, 'What?') : result(body.id, { tools: [], ok: true })
      if (body.id !== undefined) channel?.write(`data: ${JSON.stringify(answer)}\n\n`)
    })
    const upstream = connectTo({ ...server, url: `${server.origin}/sse` }, closing, { type: 'sse' })
    const peer = await upstream.open(dedicated)
    expect(peer.revision).toBe('2024-11-05')
    expect(await exchangeWith(peer, 'tools/call', { params: { name: 'x' } }).result()).toMatchObject({ ok: true })
    expect(server.of('notifications/initialized')).toHaveLength(0)
    expect(await exchangeWith(peer, 'server/discover').result()).toMatchObject({ capabilities: { tools: {} } })
  })

  it('that is never answered fails after a while', async () => {
    const server = await scriptedServer(({ method }, response) => {
      if (method === 'GET') response.writeHead(200, { 'content-type': 'text/event-stream' }).write(ENDPOINT)
      else response.writeHead(202).end()
    })
    const upstream = connectTo({ ...server, url: `${server.origin}/sse` }, closing, { type: 'sse' }, { answerMs: 100 })
    await expect(upstream.open(dedicated)).rejects.toMatchObject({
      reason: 'upstream_timeout',
      message: 'Server "far" did not answer initialize within 0.1 s',
    })
    await server.until(() => server.of('GET').every(({ isGone }) => isGone), 'the channel to be closed')
  })
})

describe('an answer', () => {
  it.each<[string, ChannelScript]>([
    ['on the channel', answerOk],
    [
      'on the channel, before the reply to the POST',
      ({ body }, channel, response) => {
        if (body.id !== undefined) channel.event(result(body.id, { ok: true }))
        setTimeout(() => response.writeHead(202).end('Accepted'), 20)
      },
    ],
    [
      'on the channel, after a reply that says something else',
      ({ body }, channel, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"queued"}')
        if (body.id !== undefined) setTimeout(() => channel.event(result(body.id, { ok: true })), 20)
      },
    ],
    [
      'on the channel, after a reply that is no JSON',
      ({ body }, channel, response) => {
        response.writeHead(200, { 'content-type': 'text/plain' }).end('ok')
        if (body.id !== undefined) setTimeout(() => channel.event(result(body.id, { ok: true })), 20)
      },
    ],
    ['in the reply', ({ body }, _, response) => inBody(response, body)],
    [
      'both ways, the reply first',
      ({ body }, channel, response) => {
        inBody(response, body)
        if (body.id !== undefined) setTimeout(() => channel.event(result(body.id, { ok: 'late' })), 20)
      },
    ],
    [
      'both ways, the channel first',
      ({ body }, channel, response) => {
        if (body.id !== undefined) channel.event(result(body.id, { ok: true }))
        setTimeout(() => inBody(response, body, 'late'), 20)
      },
    ],
  ])('may come %s', async (_, script) => {
    const { peer } = await talking(script)
    const calls = [exchangeWith(peer, 'tools/list'), exchangeWith(peer, 'tools/call', { params: { name: 'x' } })]
    expect(await Promise.all(calls.map(call => call.result()))).toEqual([{ ok: true }, { ok: true }])
    await new Promise(resolve => setTimeout(resolve, 60))
    expect(calls.map(call => call.finals().length)).toEqual([1, 1])
  })

  it('is found by its id, in whatever order answers come', async () => {
    const { server, peer, channel } = await talking()
    const [one, two] = [exchangeWith(peer, 'tools/call'), exchangeWith(peer, 'tools/call')]
    const [first, second] = [await idOf(server, 'tools/call'), await idOf(server, 'tools/call', 2)]
    channel.event([result(second, { n: 2 }), result(first, { n: 1 })])
    expect([await one.result(), await two.result()]).toEqual([{ n: 1 }, { n: 2 }])
  })

  it('may be named response; pings, lifecycle, comments and empty data are none', async () => {
    const { server, peer, channel } = await talking()
    const call = exchangeWith(peer, 'tools/call')
    const id = await idOf(server, 'tools/call')
    channel.raw(': comment\n\nevent: ping\ndata: \n\ndata\n\n')
    channel.raw(`event: lifecycle\ndata: {"jsonrpc":"2.0","id":${id},"result":{"ok":"no"}}\n\n`)
    channel.raw('event: endpoint\ndata: /elsewhere\n\n')
    channel.event(result(id, { ok: true }), 'event: response\n')
    expect(await call.result()).toEqual({ ok: true })
    expect(call.frames).toHaveLength(1)
  })

  it('that is an error of the channel fails everything in flight', async () => {
    const { server, peer, channel } = await talking()
    const calls = [exchangeWith(peer, 'tools/call'), exchangeWith(peer, 'tools/list')]
    await server.arrived('tools/list')
    channel.raw('event: error\ndata: {"code":-32002,"message":"Rate limit exceeded"}\n\n')
    for (const call of calls)
      expect(await call.failure()).toMatchObject({ code: -32002, message: 'Rate limit exceeded' })
  })

  it('with a status that says no fails the request that was posted, and no other', async () => {
    const { server, peer, channel } = await talking(({ body }, _, response) => {
      if (body.method !== 'tools/list') return void response.writeHead(202).end()
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(JSON.stringify(failure('server-error', -32600, 'Bad Request: No valid thing')))
    })
    const other = exchangeWith(peer, 'tools/call')
    expect(await exchangeWith(peer, 'tools/list').failure()).toMatchObject({
      code: -32600,
      message: 'Bad Request: No valid thing',
    })
    channel.event(result(await idOf(server, 'tools/call'), { ok: true }))
    expect(await other.result()).toEqual({ ok: true })
  })

  it.each([
    [500, 'upstream_protocol'],
    [503, 'upstream_unreachable'],
    [401, 'upstream_auth'],
    [413, 'too_large'],
  ])('of HTTP %s is a failure of its own kind', async (status, reason) => {
    const { peer } = await talking((_, __, response) => void response.writeHead(status).end('<html>'))
    expect((await exchangeWith(peer, 'tools/call').failure()).data).toMatchObject({ reason, upstream: 'far' })
  })

  it('cannot come where the server hangs up on the request', async () => {
    const { server, peer } = await talking(({ body }, _, response) => {
      if (body.method?.startsWith('tools/')) response.destroy()
      else response.writeHead(202).end()
    })
    expect((await exchangeWith(peer, 'tools/call').failure()).data).toMatchObject({ reason: 'upstream_stream_lost' })
    await exchangeWith(peer, 'tools/list').failure()
    expect(server.of('tools/call')).toHaveLength(1)
    expect(server.of('tools/list')).toHaveLength(2) // this may be asked twice
  })

  it('with a string for an id fails what is in flight', async () => {
    const { server, peer, channel } = await talking()
    const call = exchangeWith(peer, 'tools/call')
    await server.arrived('tools/call')
    channel.event(failure('server-error', -32600, 'Invalid'))
    expect(await call.failure()).toMatchObject({ code: -32600 })
  })

  it('that never comes times out, and the call is cancelled at the server', async () => {
    const { server, upstream } = await connect(silent, {}, { type: 'sse', timeoutMs: 100 })
    const call = exchangeWith(await upstream.open(dedicated), 'tools/call')
    const { id } = (await server.arrived('tools/call')).body
    expect((await call.failure()).data).toMatchObject({ reason: 'upstream_timeout' })
    expect((await server.arrived('notifications/cancelled')).body.params).toMatchObject({ requestId: id })
  })
})

const inBody = (response: Parameters<ChannelScript>[2], body: Arrived['body'], ok: unknown = true): void => {
  if (body.id === undefined) return void response.writeHead(202).end()
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result(body.id, { ok })))
}

describe('a call', () => {
  it('gets its progress under its own token, and log messages if it is the only call', async () => {
    const { server, peer, channel } = await talking()
    const call = exchangeWith(peer, 'tools/call', { params: { name: 'x', _meta: { progressToken: 'mine' } } })
    const arrived = await server.arrived('tools/call')
    channel.event(notice('notifications/progress', { progressToken: tokenOf(arrived), progress: 1 }))
    channel.event(notice('notifications/message', { level: 'info', data: 'hi' }))
    channel.event(notice('notifications/progress', { progressToken: 'unknown', progress: 2 }))
    channel.event(result(arrived.body.id, {}))
    await call.result()
    expect(call.frames.map(frame => frame.kind === 'notice' && [frame.method, frame.params.toValue()])).toEqual([
      ['notifications/progress', { progressToken: 'mine', progress: 1 }],
      ['notifications/message', { level: 'info', data: 'hi' }],
      false,
    ])
  })

  it('is cancelled at the server', async () => {
    const { server, peer } = await talking()
    const call = exchangeWith(peer, 'tools/call')
    const { id } = (await server.arrived('tools/call')).body
    call.abort.abort({ kind: 'cancelled', text: 'enough' })
    expect((await server.arrived('notifications/cancelled')).body.params).toEqual({ requestId: id, reason: 'enough' })
    expect(call.frames).toEqual([])
  })

  it('with a slow reader delays no other call, and ends when too much is buffered', async () => {
    const { server, peer, channel } = await talking()
    const slow = exchangeWith(peer, 'tools/call', { onFrame: frame => (frame.kind === 'notice' ? hang() : undefined) })
    const { id } = (await server.arrived('tools/call')).body
    const log = (count: number) => {
      for (let i = 0; i < count; i++) channel.event(notice('notifications/message', { level: 'info', data: i }))
    }
    log(500)
    await slow.notice('notifications/message')
    const other = exchangeWith(peer, 'tools/list')
    channel.event(result(await idOf(server, 'tools/list'), { ok: true }))
    expect(await other.result()).toEqual({ ok: true })
    log(1001)
    expect((await server.arrived('notifications/cancelled')).body.params).toEqual({
      requestId: id,
      reason: expect.stringContaining('too slowly'),
    })
    expect(slow.frames).toHaveLength(1)
  })
})

const hang = (): Promise<void> => new Promise(() => {})

describe('a question', () => {
  const ask = (id: unknown) => request(id, 'elicitation/create', { message: 'Name?' })

  it('goes to the call that can be asked', async () => {
    const { server, peer, channel } = await talking()
    const call = exchangeWith(peer, 'tools/call')
    const list = exchangeWith(peer, 'tools/list')
    await server.arrived('tools/list')
    channel.event(ask('q'))
    const question = await call.question()
    expect(question).toMatchObject({ method: 'elicitation/create' })
    question.answer({ kind: 'result', result: Json.of({ action: 'accept', content: { name: 'Ada' } }) })
    expect(await answerQuestion(server, 'q')).toMatchObject({ result: { action: 'accept', content: { name: 'Ada' } } })
    expect(list.frames).toEqual([])
  })

  it('goes to the latest of several', async () => {
    const { server, peer, channel } = await talking()
    const early = exchangeWith(peer, 'tools/call')
    const late = exchangeWith(peer, 'prompts/get')
    await server.arrived('prompts/get')
    channel.event(ask(1))
    await late.question()
    expect(early.frames).toEqual([])
  })

  it('outside any call goes to the listener', async () => {
    const { server, peer, channel } = await talking()
    const listen = exchangeWith(peer, 'subscriptions/listen', { params: { notifications: {} } })
    channel.event(ask(7))
    const question = await listen.question()
    question.answer({ kind: 'error', error: { code: -1, message: 'no' } })
    expect(await answerQuestion(server, 7)).toMatchObject({ error: { code: -1 } })
  })

  it('stops the timeout of its call', async () => {
    const { server, upstream } = await connect(silent, {}, { type: 'sse', timeoutMs: 150 })
    const peer = await upstream.open(dedicated)
    const call = exchangeWith(peer, 'tools/call')
    const { id } = (await server.arrived('tools/call')).body
    server.streams[0]?.event(ask(1))
    const question = await call.question()
    expect((await exchangeWith(peer, 'tools/list').failure()).data?.reason).toBe('upstream_timeout')
    question.answer({ kind: 'result', result: Json.of({ action: 'cancel' }) })
    await answerQuestion(server, 1)
    server.streams[0]?.event(result(id, { ok: true }))
    expect(await call.result()).toEqual({ ok: true })
  })

  it('is withdrawn by the server, and answered when the call is cancelled', async () => {
    const { server, peer, channel } = await talking()
    const call = exchangeWith(peer, 'tools/call')
    await server.arrived('tools/call')
    channel.event(ask(1))
    const first = await call.question()
    channel.event(notice('notifications/cancelled', { requestId: 1 }))
    await new Promise<void>(resolve => first.withdrawn.onAbort(() => resolve()))
    channel.event(ask(2))
    await call.question(1)
    call.abort.abort({ kind: 'gone' })
    expect(await answerQuestion(server, 2)).toMatchObject({ result: { action: 'cancel' } })
  })

  it('outlives the call it was asked on: a call the server has answered did not own it', async () => {
    const { server, peer, channel } = await talking()
    const call = exchangeWith(peer, 'tools/call')
    const { id } = (await server.arrived('tools/call')).body
    channel.event(ask('q'))
    const question = await call.question()
    channel.event(result(id, { ok: true }))
    await call.result()
    expect(question.withdrawn.reason).toBeUndefined()
    question.answer({ kind: 'result', result: Json.of({ action: 'accept', content: { name: 'Ada' } }) })
    expect(await answerQuestion(server, 'q')).toMatchObject({ result: { action: 'accept', content: { name: 'Ada' } } })
  })

  it('outlives a call that is cancelled while another runs that may own it', async () => {
    const { server, peer, channel } = await talking()
    exchangeWith(peer, 'tools/call')
    const latest = exchangeWith(peer, 'prompts/get')
    await server.arrived('prompts/get')
    channel.event(ask('q'))
    const question = await latest.question()
    latest.abort.abort({ kind: 'gone' })
    expect(question.withdrawn.reason).toBeUndefined()
    question.answer({ kind: 'result', result: Json.of({ action: 'decline' }) })
    expect(await answerQuestion(server, 'q')).toMatchObject({ result: { action: 'decline' } })
  })

  it('that is a ping is answered by the gateway', async () => {
    const { server, channel } = await talking()
    channel.event(request('p', 'ping'))
    expect(await answerQuestion(server, 'p')).toMatchObject({ result: {} })
  })
})

describe('a channel that breaks', () => {
  it('fails every call in flight, with its questions, and says so', async () => {
    const { server, peer, channel } = await talking()
    const calls = [exchangeWith(peer, 'tools/call'), exchangeWith(peer, 'tools/list')]
    await server.arrived('tools/list')
    channel.event(request(1, 'elicitation/create'))
    const question = await calls[0]?.question()
    channel.cut()
    for (const call of calls)
      expect(await call.failure()).toMatchObject({
        code: -32603,
        message: 'Server "far" lost the channel the answer was to come on',
        data: { reason: 'upstream_stream_lost', upstream: 'far' },
      })
    expect(question?.withdrawn.reason).toBeDefined()
  })

  it('is opened again by the next call, and the state of the session is restored', async () => {
    const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } }
    const { server, peer, channel } = await talking(answerOk, {}, { capabilities })
    const listen = exchangeWith(peer, 'subscriptions/listen', { params: { notifications: {} } })
    await exchangeWith(peer, 'resources/subscribe', { params: { uri: 'a:b' } }).result()
    await exchangeWith(peer, 'logging/setLevel', { params: { level: 'info' } }).result()
    channel.event(request('q', 'elicitation/create'))
    const question = await listen.question()
    channel.end()
    await new Promise<void>(resolve => question.withdrawn.onAbort(() => resolve()))
    const calls = [exchangeWith(peer, 'tools/call'), exchangeWith(peer, 'tools/list')]
    for (const call of calls) expect(await call.result()).toEqual({ ok: true })
    expect(server.of('GET')).toHaveLength(2)
    expect(server.of('initialize')).toHaveLength(2)
    expect(server.of('resources/subscribe')[1]?.body.params).toEqual({ uri: 'a:b' })
    expect(server.of('logging/setLevel')).toHaveLength(2)
    await listen.notice('notifications/tools/list_changed')
  })

  it('is opened again by itself while a listener is subscribed to a resource', async () => {
    const { server, peer, channel } = await talking(answerOk)
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated })
    await exchangeWith(peer, 'resources/subscribe', { caller: dedicated, params: { uri: 'a:b' } }).result()
    channel.cut()
    await server.arrived('resources/subscribe', 2)
    server.streams[1]?.event(notice('notifications/resources/updated', { uri: 'a:b' }))
    await listen.notice('notifications/resources/updated')
  })

  it('is not opened again while no listener needs it', async () => {
    const { server, peer, channel } = await talking(answerOk)
    exchangeWith(peer, 'subscriptions/listen', { params: { notifications: {} } })
    channel.cut()
    exchangeWith(peer, 'notifications/roots/list_changed', { kind: 'notification' })
    await new Promise(resolve => setTimeout(resolve, 100))
    expect(server.of('GET')).toHaveLength(1)
  })

  it('fails the calls that need it while the server is away, and no later ones', async () => {
    const { server, peer, channel } = await talking(answerOk)
    const again = server.arrivals.length
    channel.cut()
    server.become((_, response) => void response.writeHead(503).end())
    await expect
      .poll(async () => (await exchangeWith(peer, 'tools/list').failure()).data?.reason)
      .toBe('upstream_unreachable')
    expect(server.arrivals.length).toBeGreaterThan(again)
    server.become(({ method, body }, response) => {
      if (method === 'GET') return void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(ENDPOINT)
      const introduction = { protocolVersion: '2024-11-05', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
      const value = body.method === 'initialize' ? introduction : { ok: 'again' }
      inBodyAs(response, body, value)
    })
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: 'again' })
  })

  it('may also be one that the server forgot: the call is sent again on a new one, once', async () => {
    let refusals = 1
    const { server, peer } = await talking((arrived, channel, response) => {
      if (arrived.body.method === 'tools/call' && refusals-- > 0) return void response.writeHead(404).end('no session')
      answerOk(arrived, channel, response)
    })
    expect(await exchangeWith(peer, 'tools/call').result()).toEqual({ ok: true })
    expect(server.of('GET')).toHaveLength(2)
    refusals = 5
    expect((await exchangeWith(peer, 'tools/call').failure()).message).toContain('HTTP 404')
    expect(server.of('tools/call')).toHaveLength(4)
  })

  it('in the middle of the handshake fails the opening', async () => {
    const server = await scriptedServer(({ method }, response) => {
      if (method === 'GET') return void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(ENDPOINT)
      response.writeHead(202).end()
      server.of('GET')[0]?.response.destroy()
    })
    const upstream = connectTo({ ...server, url: `${server.origin}/sse` }, closing, { type: 'sse' })
    await expect(upstream.open(dedicated)).rejects.toMatchObject({ reason: 'upstream_stream_lost' })
  })
})

const inBodyAs = (response: Parameters<ChannelScript>[2], { id }: Arrived['body'], value: unknown): void => {
  if (id === undefined) return void response.writeHead(202).end()
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result(id, value)))
}

describe('closing', () => {
  it('ends the channel with the client session it belongs to', async () => {
    const { server, peer } = await talking()
    const listen = exchangeWith(peer, 'subscriptions/listen', { params: { notifications: {} } })
    listen.abort.abort({ kind: 'gone' })
    await server.until(() => server.of('GET')[0]?.isGone === true, 'the channel to be closed')
  })

  it('fails the calls under way', async () => {
    const { server, upstream, peer } = await talking()
    const call = exchangeWith(peer, 'tools/call')
    const listen = exchangeWith(peer, 'subscriptions/listen', { params: { notifications: {} } })
    await server.arrived('tools/call')
    await upstream.close()
    expect((await call.failure()).message).toContain('is being disconnected')
    expect(await listen.result()).toEqual({ resultType: 'complete' })
    await server.until(() => server.sockets.size === 0, 'every socket to be closed')
  })

  it('while a channel is being opened again fails the calls that wait for it', async () => {
    const { server, peer, channel } = await talking(answerOk)
    const listen = exchangeWith(peer, 'subscriptions/listen', { params: { notifications: {} } })
    channel.event(request('q', 'elicitation/create'))
    const question = await listen.question()
    server.become(() => {}) // answers nothing any more
    channel.cut()
    await new Promise<void>(resolve => question.withdrawn.onAbort(() => resolve()))
    const call = exchangeWith(peer, 'tools/call')
    await server.arrived('GET', 2)
    listen.abort.abort({ kind: 'gone' })
    expect((await call.failure()).message).toContain('is being disconnected')
    await server.until(() => server.of('GET')[1]?.isGone === true, 'the second channel to be given up')
  })

  it('leaves no timer and no socket behind, also of channels that broke', async () => {
    const resources = () =>
      process.getActiveResourcesInfo().filter(name => name === 'Timeout' || name === 'TCPSocketWrap').length
    const server = await channelServer(silent)
    const before = resources()
    const upstream = connectTo(server, closing, { type: 'sse', timeoutMs: 60_000 })
    const calls = []
    for (let i = 0; i < 20; i++) {
      const caller = callerOf({ session: `client-${i}` })
      const peer = await upstream.open(caller)
      calls.push(exchangeWith(peer, 'tools/call', { caller }))
      exchangeWith(peer, 'subscriptions/listen', { caller })
    }
    await server.arrived('tools/call', 20)
    expect(resources()).toBeGreaterThan(before)
    for (const channel of server.streams.slice(0, 10)) channel.cut()
    for (const call of calls.slice(0, 10)) await call.failure()
    await upstream.close()
    for (const call of calls) await call.failure()
    await server.until(() => server.sockets.size === 0, 'every socket to be closed')
    await expect.poll(resources).toBeLessThanOrEqual(before + 1) // the clock of this very poll
  })
})

describe('a server that takes messages where its channel is', () => {
  const LIFECYCLE = 'event: lifecycle\ndata: {"jsonrpc":"2.0","method":"streamOpened","params":{}}\n\n'

  /** It answers on the newest channel, under its own name for answers. */
  const here = (answer: (body: Arrived['body']) => object | undefined, first = LIFECYCLE, headers = {}) =>
    scriptedServer(({ method, body }, response) => {
      if (method === 'GET') {
        response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
        return void response.write(first)
      }
      response.writeHead(202).end()
      const said = body.id === undefined ? undefined : answer(body)
      channels()
        .at(-1)
        ?.write(said ? `event: response\ndata: ${JSON.stringify(said)}\n\n` : '')
    }).then(server => {
      channels = () => server.of('GET').map(({ response }) => response)
      return server
    })
  let channels: () => Arrived['response'][] = () => []

  const knowsTools = ({ id, method }: Arrived['body']) =>
    method?.startsWith('tools/') ? result(id, { ok: true }) : failure(id, -32601, 'Method not found')

  it('is detected, and used without a handshake if it has none', async () => {
    const server = await here(knowsTools)
    const upstream = connectTo(server, closing, {}, { endpointMs: 300 })
    const peer = await upstream.open(dedicated)
    expect(peer).toMatchObject({ revision: '2024-11-05', correlates: false })
    expect(await exchangeWith(peer, 'tools/call', { params: { name: 'github/list_issues' } }).result()).toEqual({
      ok: true,
    })
    expect(new Set(server.arrivals.map(({ url }) => url))).toEqual(new Set(['/mcp']))
    expect(server.of('notifications/initialized')).toHaveLength(0)
  })

  it('may not answer a handshake at all', async () => {
    const server = await here(body => (body.method?.startsWith('tools/') ? knowsTools(body) : undefined))
    const upstream = connectTo(server, closing, {}, { endpointMs: 100 })
    const peer = await upstream.open(dedicated)
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: true })
  })

  it('may send nothing on its channel until it gets a request', async () => {
    const server = await here(knowsTools, ': quiet\n\n')
    const upstream = connectTo(server, closing)
    const peer = await upstream.open(dedicated)
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: true })
  })

  it('may accept a handshake, and gets the session id of its channel', async () => {
    const introduction = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
    const server = await here(
      ({ id, method }) => result(id, method === 'initialize' ? introduction : { ok: true }),
      LIFECYCLE,
      { 'mcp-session-id': 'chan-1' },
    )
    const upstream = connectTo(server, closing, { type: 'sse' })
    const peer = await upstream.open(dedicated)
    expect(peer.revision).toBe('2025-06-18')
    await exchangeWith(peer, 'tools/list').result()
    expect(server.of('POST').map(({ headers }) => headers['mcp-session-id'])).toEqual(Array(3).fill('chan-1'))
  })

  it('may send a message of its own first', async () => {
    const server = await here(knowsTools, `event: notification\ndata: ${JSON.stringify(request('p', 'ping'))}\n\n`)
    const upstream = connectTo(server, closing, { type: 'sse' })
    await upstream.open(dedicated)
    await server.until(() => server.of('POST').some(({ body }) => body.id === 'p' && 'result' in body), 'the pong')
  })
})

it('a server that ends its channels soon is connected to less and less often while a client listens', async () => {
  const { server, peer } = await talking(answerOk)
  exchangeWith(peer, 'subscriptions/listen', { caller: dedicated, params: { notifications: {} } })
  const random = vi.spyOn(Math, 'random').mockReturnValue(0)
  const timers = vi.spyOn(globalThis, 'setTimeout')
  const delays = () => timers.mock.calls.flatMap(([, ms]) => (ms === 500 || ms === 1000 || ms === 2000 ? ms : []))
  for (const count of [1, 2]) {
    server.streams.at(-1)?.end()
    await server.arrived('notifications/initialized', count + 1)
  }
  server.streams.at(-1)?.end()
  await vi.waitFor(() => expect(delays()).toContain(2000))
  for (const spy of [random, timers]) spy.mockRestore()
})
