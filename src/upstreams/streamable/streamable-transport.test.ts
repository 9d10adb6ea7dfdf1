import type { ServerResponse } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import {
  callerOf,
  exchangeWith,
  failure,
  legacy,
  notice,
  openStream,
  request,
  result,
  type Script,
  type ScriptedServer,
  scriptedServer,
  sendJson,
  tokenOf,
} from '../../../test/support/scripted-server.ts'
import type { RemoteServer } from '../../config/snapshot.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { connectRemote, type RemoteOptions } from '../connect-remote.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Stream = ReturnType<typeof openStream>

const dedicated = callerOf({
  revision: '2025-11-25',
  session: 'client-1',
  info: Json.of({ name: 'client', version: '3' }),
  capabilities: Json.of({ elicitation: {}, roots: { listChanged: true } }),
})

const connect = async (script: Script, config: Partial<RemoteServer> = {}, options: Partial<RemoteOptions> = {}) => {
  const server = await scriptedServer(script)
  const remote = { kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'legacy', timeoutMs: 2000 } as const
  const upstream = connectRemote({ name: 'far', ...remote, ...config }, { log: SILENT, answerMs: 1000, ...options })
  closing.push(
    () => server.close(),
    () => upstream.close(),
  )
  return { server, upstream }
}

/** A server with a GET stream the test can write to, and a client session on it. */
const listening = async (script: Script = answerOk, options: Partial<RemoteOptions> = {}, sessions?: string[]) => {
  const streams: Stream[] = []
  const listen: Script = (_, response) => void streams.push(openStream(response))
  const { server, upstream } = await connect(legacy(script, { listen, ...(sessions && { sessions }) }), {}, options)
  const peer = await upstream.open(dedicated)
  const stream = streams[0] as Stream
  return { server, upstream, peer, stream, streams }
}

const answerOk: Script = ({ body }, response) => {
  if (body.method === undefined || body.id === undefined) response.writeHead(202).end()
  else sendJson(response, result(body.id, { ok: true }))
}

/** What the client posted as answer to a question of the server. */
const answerQuestion = async (server: ScriptedServer, id: unknown) => {
  const isAnswer = ({ body }: { body: Record<string, unknown> }) =>
    body.id === id && body.method === undefined && ('result' in body || 'error' in body)
  await server.until(() => server.arrivals.some(isAnswer), `the answer to ${id}`)
  return server.arrivals.find(isAnswer)?.body
}

/** Asks on the GET stream until the test has seen it: at first a call may still wait for its own stream. */
const askUntil = async (stream: Stream, isSeen: () => boolean): Promise<void> => {
  let asked = 0
  await expect.poll(() => stream.event(request(`q${++asked}`, 'elicitation/create')) && isSeen()).toBe(true)
}

describe('opening a session', () => {
  it('initializes as the caller, opens the GET stream, and sends notifications/initialized', async () => {
    const { server, peer } = await listening()
    expect(server.arrivals.map(({ method, body }) => body.method ?? method)).toEqual([
      'initialize',
      'GET',
      'notifications/initialized',
    ])
    const [initialize, get, initialized] = server.arrivals
    expect(initialize?.body.params).toEqual({
      protocolVersion: '2025-11-25',
      capabilities: { elicitation: {}, roots: { listChanged: true } },
      clientInfo: { name: 'client', version: '3' },
    })
    expect(initialize?.headers).not.toHaveProperty('mcp-session-id')
    expect(initialize?.headers).not.toHaveProperty('mcp-protocol-version')
    for (const later of [get, initialized])
      expect(later?.headers).toMatchObject({ 'mcp-session-id': 's1', 'mcp-protocol-version': '2025-11-25' })
    expect(get?.headers.accept).toBe('text/event-stream')
    expect(peer).toMatchObject({ revision: '2025-11-25', asks: true })
  })

  it('sends the client info of the gateway if the caller has none', async () => {
    const { server, upstream } = await connect(legacy(answerOk), {}, { identity: { name: 'gw', version: '9' } })
    await upstream.open(callerOf())
    expect(server.of('initialize')[0]?.body.params?.clientInfo).toEqual({ name: 'gw', version: '9' })
  })

  it.each([
    ['2024-11-05', false],
    ['2025-03-26', false],
    ['2025-06-18', true],
  ])('accepts %s and writes the version header: %s', async (version, hasHeader) => {
    const { server, upstream } = await connect(legacy(answerOk, { version, sessions: [] }))
    const peer = await upstream.open(dedicated)
    expect(peer.revision).toBe(version)
    await exchangeWith(peer, 'tools/list').result()
    const { headers } = server.of('tools/list')[0] ?? {}
    expect(headers?.['mcp-protocol-version']).toBe(hasHeader ? version : undefined)
    expect(headers).not.toHaveProperty('mcp-session-id')
  })

  it.each(['1999-01-01', '2026-07-28'])('refuses a server that settles on %s', async version => {
    const { upstream } = await connect(legacy(answerOk, { version }))
    await expect(upstream.open(dedicated)).rejects.toMatchObject({
      message: expect.stringContaining(`Server "far" answered initialize with protocol version ${version}`),
      error: { code: -32603 },
    })
  })

  it('takes the answer from an event stream', async () => {
    const { upstream } = await connect((arrived, response) => {
      if (arrived.body.method !== 'initialize') return legacy(answerOk)(arrived, response)
      const stream = openStream(response, { 'mcp-session-id': 'sse-1' })
      stream.raw('id: 1\ndata:\n\n')
      stream.event(result(arrived.body.id, { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: {} }))
    })
    expect((await upstream.open(dedicated)).revision).toBe('2025-06-18')
  })

  it('opens the GET stream again if the server offers it only after notifications/initialized', async () => {
    let isReady = false
    const inner = legacy(answerOk, {
      listen: (_, response) => {
        if (isReady) openStream(response)
        else response.writeHead(400).end()
      },
    })
    const { server, upstream } = await connect((arrived, response) => {
      isReady ||= arrived.body.method === 'notifications/initialized'
      inner(arrived, response)
    })
    await upstream.open(dedicated)
    await server.arrived('GET', 2)
  })

  it('remembers that there is no GET stream', async () => {
    const { server, upstream } = await connect(legacy(answerOk))
    await upstream.open(dedicated)
    await upstream.open({ ...dedicated, session: 'client-2' })
    expect(server.of('initialize')).toHaveLength(2)
    expect(server.of('GET')).toHaveLength(1)
  })

  it('ends the session that a handshake opened which the gateway cannot use', async () => {
    const { server, upstream } = await connect(legacy(answerOk, { version: '1999-01-01' }))
    await expect(upstream.open(dedicated)).rejects.toThrow('protocol version 1999-01-01')
    const { headers } = await server.arrived('DELETE')
    expect(headers['mcp-session-id']).toBe('s1')
  })

  it('is used without a handshake if the server refuses it and answers other requests', async () => {
    const { server, upstream } = await connect(({ method, body }, response) => {
      if (method === 'GET') response.writeHead(405).end()
      else if (body.method === 'initialize') sendJson(response, failure('server-error', -32600, 'What?'), 400)
      else sendJson(response, result(body.id, { tools: [] }))
    })
    const peer = await upstream.open(dedicated)
    expect(peer.revision).toBe('2024-11-05')
    expect(await exchangeWith(peer, 'tools/call').result()).toEqual({ tools: [] })
    expect(server.of('notifications/initialized')).toHaveLength(0)
  })

  it('is used without a handshake if the server has none', async () => {
    const { server, upstream } = await connect(({ body }, response) => {
      if (body.method === 'initialize') sendJson(response, failure(body.id, -32601, 'Method not found'))
      else sendJson(response, result(body.id, { tools: [] }))
    })
    const peer = await upstream.open(dedicated)
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ tools: [] })
    expect(server.arrivals.map(({ body }) => body.method)).toEqual(['initialize', 'tools/list'])
  })

  it.each<[string, Script, RegExp]>([
    ['401', (_, response) => void response.writeHead(401).end(), /refused our credentials \(HTTP 401\)/],
    ['405', (_, response) => void response.writeHead(405).end(), /HTTP 405 \(is the URL right\?\)/],
    ['202', (_, response) => void response.writeHead(202).end(), /accepted initialize but sent no answer/],
    [
      'an error',
      ({ body }, response) => sendJson(response, failure(body.id, -32000, 'full house')),
      /refused initialize: full house/,
    ],
    [
      '400 and an error',
      (_, response) => sendJson(response, failure(null, -32000, 'full house'), 400),
      /refused initialize: full house/,
    ],
    ['a page', (_, response) => void response.end('<html>'), /not JSON/],
    ['silence', () => {}, /did not answer in time/],
  ])('fails in words on %s', async (_, script, message) => {
    const { upstream } = await connect(script, {}, { answerMs: 200 })
    await expect(upstream.open(dedicated)).rejects.toThrow(message)
  })
})

describe('a call', () => {
  it('has its own id and progress token, and the headers of its session', async () => {
    const { server, peer } = await listening((arrived, response) => {
      const stream = openStream(response)
      stream.raw('id: e1\ndata:\n\n')
      stream.event(notice('notifications/progress', { progressToken: tokenOf(arrived), progress: 1 }))
      stream.event(notice('notifications/message', { data: 'x' }))
      stream.event(result(arrived.body.id, { content: [] }))
      stream.end()
    })
    const call = exchangeWith(peer, 'tools/call', { params: { name: 'x', _meta: { progressToken: 'mine' } } })
    expect(await call.result()).toEqual({ content: [] })
    expect(call.frames.map(frame => frame.kind)).toEqual(['notice', 'notice', 'result'])
    expect(call.frames[0]).toMatchObject({ method: 'notifications/progress' })
    expect(call.frames[0]?.kind === 'notice' && call.frames[0].params.toValue()).toEqual({
      progressToken: 'mine',
      progress: 1,
    })
    expect(server.of('tools/call')[0]?.headers['mcp-session-id']).toBe('s1')
  })

  it('gets its messages on whatever stream they arrive', async () => {
    const { peer, stream, server } = await listening((_, response) => void openStream(response))
    const params = { _meta: { progressToken: 'mine' } }
    const calls = [exchangeWith(peer, 'tools/call', { params }), exchangeWith(peer, 'tools/call', { params })]
    await server.arrived('tools/call', 2)
    const [first, second] = server.of('tools/call').map(({ body, response }) => ({ id: body.id, response }))
    stream.event(notice('notifications/progress', { progressToken: first?.id, progress: 1 }))
    first?.response.write(
      `data: ${JSON.stringify(notice('notifications/progress', { progressToken: second?.id, progress: 2 }))}\n\n`,
    )
    await calls[0]?.notice('notifications/progress')
    await calls[1]?.notice('notifications/progress')
    expect(calls.map(({ frames }) => frames.map(frame => frame.kind === 'notice' && frame.params.toValue()))).toEqual([
      [{ progressToken: 'mine', progress: 1 }],
      [{ progressToken: 'mine', progress: 2 }],
    ])
    stream.event(result(first?.id, { over: 'GET' }))
    expect(await calls[0]?.result()).toEqual({ over: 'GET' })
  })

  it('may be an error under an id of the server’s own', async () => {
    const { peer } = await listening((arrived, response) => {
      if (arrived.body.id === undefined) return void response.writeHead(202).end()
      const stream = openStream(response)
      stream.event(failure('server-error', -32600, 'Not that'))
      stream.end()
    })
    expect(await exchangeWith(peer, 'tools/call').failure()).toMatchObject({ code: -32600, message: 'Not that' })
  })

  it('may be accepted, and the server asks about it on the GET stream', async () => {
    const { peer, stream, server } = await listening((_, response) => void response.writeHead(202).end('Accepted'))
    const call = exchangeWith(peer, 'tools/call')
    await server.arrived('tools/call')
    await askUntil(stream, () => call.frames.length > 0)
    expect(await call.question()).toMatchObject({ method: 'elicitation/create' })
  })

  it('correlates questions with calls until the server asks elsewhere during a call', async () => {
    const { peer, stream, server } = await listening(({ method, body }, response) => {
      if (method === 'POST' && body.method !== 'tools/call') response.writeHead(202).end()
    })
    expect(peer.correlates).toBe(true)
    exchangeWith(peer, 'tools/call')
    await server.arrived('tools/call')
    await askUntil(stream, () => peer.correlates === false)
  })

  it('that was to come on the GET stream is lost with it', async () => {
    const { peer, stream, server } = await listening((_, response) => void response.writeHead(202).end('Accepted'))
    const call = exchangeWith(peer, 'tools/call')
    await server.arrived('tools/call')
    await askUntil(stream, () => call.frames.length > 0)
    stream.cut()
    expect((await call.failure()).data).toMatchObject({ reason: 'upstream_stream_lost' })
  })

  it('may be accepted and answered on the GET stream', async () => {
    const { peer, stream, server } = await listening((_, response) => void response.writeHead(202).end('Accepted'))
    const call = exchangeWith(peer, 'tools/call')
    const { body } = await server.arrived('tools/call')
    stream.event(result(body.id, { ok: 'later' }), 'event: response\n')
    expect(await call.result()).toEqual({ ok: 'later' })
  })

  it('is cancelled by a notification with the id the server knows', async () => {
    const { peer, server } = await listening(({ body }, response) => {
      if (body.method === 'tools/call') openStream(response)
      else response.writeHead(202).end()
    })
    const call = exchangeWith(peer, 'tools/call')
    const arrived = await server.arrived('tools/call')
    call.abort.abort({ kind: 'cancelled', text: 'changed my mind' })
    const cancelled = await server.arrived('notifications/cancelled')
    expect(cancelled.body.params).toEqual({ requestId: arrived.body.id, reason: 'changed my mind' })
    expect(cancelled.headers['mcp-session-id']).toBe('s1')
    expect(call.frames).toEqual([])
  })

  it('is cancelled at the server when it times out', async () => {
    const { server, upstream } = await connect(
      legacy(({ body }, response) => void (body.id === undefined && response.writeHead(202).end())),
      { timeoutMs: 100 },
    )
    const call = exchangeWith(await upstream.open(dedicated), 'tools/call')
    expect((await call.failure()).data).toEqual({ reason: 'upstream_timeout', upstream: 'far' })
    expect((await server.arrived('notifications/cancelled')).body.params).toMatchObject({ reason: 'timed out' })
  })

  it('fails with everything in flight on an error event of the session', async () => {
    const { peer, stream, server } = await listening((_, response) => void openStream(response))
    const calls = [exchangeWith(peer, 'tools/call'), exchangeWith(peer, 'tools/call')]
    await server.arrived('tools/call', 2)
    stream.event({ code: -32099, message: 'going down' }, 'event: error\n')
    for (const call of calls) expect(await call.failure()).toMatchObject({ code: -32099, message: 'going down' })
  })
})

describe('questions', () => {
  const asking: Script = ({ body }, response) => {
    if (body.method !== 'tools/call') return void response.writeHead(202).end()
    openStream(response).event(request('q-1', 'elicitation/create', { message: '?', _meta: { progressToken: 'pt' } }))
  }

  it('come on the stream of the call that needs them, and their answers go back', async () => {
    const { peer, server } = await listening(asking)
    const call = exchangeWith(peer, 'tools/call')
    const question = await call.question()
    expect(question).toMatchObject({ method: 'elicitation/create' })
    expect(question.params.get('message')?.asString()).toBe('?')
    question.answer({ kind: 'progress', params: Json.of({ progressToken: 1, progress: 5 }) })
    expect((await server.arrived('notifications/progress')).body.params).toEqual({ progressToken: 'pt', progress: 5 })
    question.answer({ kind: 'result', result: Json.of({ action: 'accept', content: {} }) })
    question.answer({ kind: 'result', result: Json.of({ action: 'decline' }) })
    expect(await answerQuestion(server, 'q-1')).toEqual(result('q-1', { action: 'accept', content: {} }))
    const { body, response } = await server.arrived('tools/call')
    response.end(`data: ${JSON.stringify(result(body.id, { done: true }))}\n\n`)
    expect(await call.result()).toEqual({ done: true })
    for (let i = 1; i <= 3; i++) {
      exchangeWith(peer, 'notifications/acme', { kind: 'notification' })
      await server.arrived('notifications/acme', i)
    }
    expect(server.arrivals.filter(({ body }) => body.id === 'q-1')).toHaveLength(1)
  })

  it('may be answered with an error', async () => {
    const { peer, server } = await listening(asking)
    const question = await exchangeWith(peer, 'tools/call').question()
    question.answer({ kind: 'error', error: { code: -1, message: 'User rejected' } })
    expect(await answerQuestion(server, 'q-1')).toEqual({
      jsonrpc: '2.0',
      id: 'q-1',
      error: { code: -1, message: 'User rejected' },
    })
  })

  it('stop the timeout of their call', async () => {
    const { server, upstream } = await connect(legacy(asking), { timeoutMs: 100 })
    const call = exchangeWith(await upstream.open(dedicated), 'tools/call')
    const question = await call.question()
    const { response } = await server.arrived('tools/call')
    response.write(`data: ${JSON.stringify(notice('notifications/message', {}))}\n\n`)
    await call.notice('notifications/message')
    server.become(legacy(() => {}))
    const later = exchangeWith(await upstream.open(dedicated), 'tools/list')
    expect((await later.failure()).data?.reason).toBe('upstream_timeout')
    expect(call.finals()).toEqual([])
    question.answer({ kind: 'result', result: Json.of({ action: 'accept' }) })
    expect((await call.failure()).data?.reason).toBe('upstream_timeout')
    await server.arrived('notifications/cancelled')
  })

  it('are withdrawn by the server', async () => {
    const { peer, stream, server } = await listening(asking)
    const question = await exchangeWith(peer, 'tools/call').question()
    const withdrawn = new Promise(resolve => question.withdrawn.onAbort(resolve))
    stream.event(notice('notifications/cancelled', { requestId: 'q-1', reason: 'timeout' }))
    await withdrawn
    question.answer({ kind: 'result', result: Json.of({ action: 'accept' }) })
    await exchangeWith(peer, 'server/discover').result()
    expect(server.arrivals.filter(({ body }) => body.id === 'q-1')).toEqual([])
  })

  it('are answered with a cancellation when their call is cancelled', async () => {
    const { peer, server } = await listening(asking)
    const call = exchangeWith(peer, 'tools/call')
    const question = await call.question()
    call.abort.abort({ kind: 'gone' })
    expect(question.withdrawn.reason).toBeDefined()
    expect(await answerQuestion(server, 'q-1')).toMatchObject({ result: { action: 'cancel' } })
    await server.arrived('notifications/cancelled')
  })

  it('outside any call go to the listener', async () => {
    const { peer, stream, server } = await listening()
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated })
    stream.event(request(0, 'roots/list'))
    const question = await listen.question()
    question.answer({ kind: 'result', result: Json.of({ roots: [] }) })
    expect(await answerQuestion(server, 0)).toEqual(result(0, { roots: [] }))
  })

  it('wait for a listener for a while', async () => {
    const { peer, stream, server } = await listening()
    stream.event(request(0, 'roots/list'))
    stream.event(notice('notifications/message', { data: 'early' }))
    await exchangeWith(peer, 'tools/list').result()
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated })
    await listen.question()
    await listen.notice('notifications/message')
    expect(listen.frames[0]).toMatchObject({ method: 'notifications/subscriptions/acknowledged' })
    expect(server.arrivals.filter(({ body }) => body.id === 0)).toEqual([])
  })

  it('that waited are not refused any more once a listener has come', async () => {
    const { peer, stream, server } = await listening(answerOk, { holdMs: 60 })
    stream.event(request(0, 'roots/list'))
    await exchangeWith(peer, 'tools/list').result()
    const question = await exchangeWith(peer, 'subscriptions/listen', { caller: dedicated }).question()
    await new Promise(resolve => setTimeout(resolve, 120))
    question.answer({ kind: 'result', result: Json.of({ roots: [] }) })
    expect(await answerQuestion(server, 0)).toEqual(result(0, { roots: [] }))
  })

  it('are refused if no listener comes', async () => {
    const { stream, server } = await listening(answerOk, { holdMs: 50 })
    stream.event(request(0, 'roots/list'))
    expect(await answerQuestion(server, 0)).toMatchObject({ error: { code: -32601 } })
  })

  it('do not include ping, which is answered here', async () => {
    const { peer, stream, server } = await listening()
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated })
    stream.event(request('p', 'ping'))
    expect(await answerQuestion(server, 'p')).toEqual(result('p', {}))
    expect(listen.frames).toHaveLength(1)
  })
})

describe('the listener', () => {
  it('is acknowledged with the changes the server announces, and gets them', async () => {
    const { peer, stream } = await listening()
    const notifications = { toolsListChanged: true, promptsListChanged: true }
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated, params: { notifications } })
    stream.event(notice('notifications/tools/list_changed', {}))
    await listen.notice('notifications/tools/list_changed')
    const [acknowledged] = listen.frames
    expect(acknowledged?.kind === 'notice' && acknowledged.params.toValue()).toEqual({
      notifications: { toolsListChanged: true },
    })
  })

  it('closes its session when it ends', async () => {
    const { server, peer, upstream } = await listening()
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated })
    listen.abort.abort({ kind: 'gone' })
    expect((await server.arrived('DELETE')).headers['mcp-session-id']).toBe('s1')
    await server.until(() => server.of('GET')[0]?.isGone === true, 'the GET stream to close')
    expect(await exchangeWith(peer, 'tools/list').failure()).toMatchObject({ data: { reason: 'upstream_lost' } })
    await exchangeWith(await upstream.open(dedicated), 'tools/list').result()
    expect(server.of('tools/list')[0]?.headers['mcp-session-id']).toBe('s2')
  })
})

it('answers server/discover from the handshake, with everything the server said', async () => {
  const { peer, server } = await listening()
  const before = server.arrivals.length
  expect(await exchangeWith(peer, 'server/discover').result()).toEqual({
    resultType: 'complete',
    supportedVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
    capabilities: { tools: { listChanged: true } },
    instructions: 'Be kind.',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'scripted', version: '1' } },
  })
  expect(server.arrivals).toHaveLength(before)
})

it('forwards notifications, but not a second notifications/initialized', async () => {
  const { peer, server } = await listening()
  exchangeWith(peer, 'notifications/initialized', { kind: 'notification' })
  exchangeWith(peer, 'notifications/roots/list_changed', { kind: 'notification' })
  await server.arrived('notifications/roots/list_changed')
  expect(server.of('notifications/initialized')).toHaveLength(1)
})

describe('a stream that breaks', () => {
  it('is resumed after the time the server asked for', async () => {
    const { peer, server } = await listening(({ body, headers, method }, response) => {
      const stream = openStream(response)
      if (method === 'GET') {
        expect(headers['last-event-id']).toBe('e1')
        stream.event(notice('notifications/message', {}))
        stream.event(result(server.of('tools/call')[0]?.body.id, { resumed: true }), 'id: e2\n')
        return void stream.end()
      }
      expect(body.method).toBe('tools/call')
      stream.raw('id: e1\nretry: 200\ndata:\n\n')
      stream.end()
    })
    const began = Date.now()
    const call = exchangeWith(peer, 'tools/call')
    expect(await call.result()).toEqual({ resumed: true })
    expect(Date.now() - began).toBeGreaterThanOrEqual(195)
    expect(call.frames.map(({ kind }) => kind)).toEqual(['notice', 'result'])
    expect(server.of('tools/call')).toHaveLength(1)
  })

  it('is resumed also when the network cut it, and as often as the server polls', async () => {
    let polls = 0
    const { peer } = await listening(({ body, method, headers }, response) => {
      const stream = openStream(response)
      if (method === 'POST') {
        stream.event(notice('notifications/message', { of: body.id }), 'retry: 60\nid: e1\n')
        return void setTimeout(stream.cut, 20)
      }
      if (++polls < 4) return void stream.end()
      expect(headers['last-event-id']).toBe('e1')
      stream.event(result(2, { polls }))
      stream.end()
    })
    expect(await exchangeWith(peer, 'tools/call').result()).toEqual({ polls: 4 })
  })

  it('shows a replayed question only once', async () => {
    const { peer, server } = await listening(({ body, method }, response) => {
      if (method === 'POST' && body.method !== 'tools/call') return void response.writeHead(202).end()
      const stream = openStream(response)
      stream.event(request('q', 'elicitation/create'), 'retry: 60\nid: e1\n')
      if (method === 'POST') return void setTimeout(stream.cut, 20)
      stream.event(result(server.of('tools/call')[0]?.body.id, {}))
    })
    const call = exchangeWith(peer, 'tools/call')
    await call.result()
    expect(call.frames.filter(({ kind }) => kind === 'question')).toHaveLength(1)
  })

  it.each([
    ['é 日本', 'é 日本'],
    ['a\tb', 'a\tb'],
  ])('is resumed from an event id outside of ASCII (%j)', async (id, expected) => {
    const { peer, server } = await listening(({ method, headers }, response) => {
      const stream = openStream(response)
      if (method === 'POST') stream.raw(`retry: 60\nid: ${id}\ndata:\n\n`)
      else stream.event(result(server.of('tools/call')[0]?.body.id, { got: headers['last-event-id'] }))
      stream.end()
    })
    const { got } = (await exchangeWith(peer, 'tools/call').result()) as { got: string }
    expect(Buffer.from(got, 'latin1').toString()).toBe(expected)
  })

  it('is lost where its event id fits no header', async () => {
    const { peer, server } = await listening((_, response) => {
      const stream = openStream(response)
      stream.raw('retry: 60\nid: a\u0001b\ndata:\n\n')
      stream.end()
    })
    expect((await exchangeWith(peer, 'tools/call').failure()).data?.reason).toBe('upstream_stream_lost')
    expect(server.arrivals.filter(({ headers }) => headers['last-event-id'] !== undefined)).toEqual([])
  })

  // A timer of more than 2^31 ms fires at once: the server would be asked in a loop.
  it.each(['99999999999999', '1'.repeat(400)])('waits if the server names %s ms, and can be cancelled', async retry => {
    const { peer, server } = await listening(({ method }, response) => {
      if (method === 'GET') return void response.writeHead(503).end()
      const stream = openStream(response)
      stream.raw(`retry: ${retry}\nid: e1\ndata:\n\n`)
      stream.end()
    })
    const before = server.of('GET').length
    expect((await exchangeWith(peer, 'tools/call').failure()).data?.reason).toBe('upstream_timeout')
    expect(server.of('GET')).toHaveLength(before)
  })

  it('is lost where the server cannot resume', async () => {
    const { peer, server } = await listening(({ method }, response) => {
      if (method === 'GET') return void response.writeHead(405).end()
      const stream = openStream(response)
      stream.raw('retry: 60\nid: e1\ndata:\n\n')
      stream.end()
    })
    expect(await exchangeWith(peer, 'tools/call').failure()).toMatchObject({
      message: 'Server "far" lost the stream of tools/call',
      data: { reason: 'upstream_stream_lost', upstream: 'far' },
    })
    expect(server.of('tools/call')).toHaveLength(1)
    await exchangeWith(peer, 'tools/list').failure()
    expect(server.of('tools/list')).toHaveLength(2)
  })

  it('is lost soon when the server was killed, although it could be resumed', async () => {
    const script: Script = (_, response) => openStream(response).raw('id: e1\ndata:\n\n')
    const { upstream, server } = await connect(legacy(script), { timeoutMs: 60_000 })
    const call = exchangeWith(await upstream.open(dedicated), 'tools/call')
    await server.arrived('tools/call')
    const killed = Date.now()
    await server.close()
    expect(await call.failure()).toMatchObject({
      message: 'Server "far" lost the stream of tools/call and cannot be reached (is it running?)',
      data: { reason: 'upstream_stream_lost', upstream: 'far' },
    })
    expect(Date.now() - killed).toBeLessThan(15_000) // two attempts, a second apart; five took 31 s
  })

  it('is lost soon when the server was killed and the answer was to come on the GET stream', async () => {
    const listen: Script = (_, response) => openStream(response).raw('id: g1\ndata:\n\n')
    const script = legacy((_, response) => void response.writeHead(202).end(), { listen })
    const { upstream, server } = await connect(script, { timeoutMs: 60_000 })
    const call = exchangeWith(await upstream.open(dedicated), 'tools/call')
    await server.arrived('tools/call')
    const killed = Date.now()
    await server.close()
    expect((await call.failure()).data?.reason).toBe('upstream_stream_lost')
    expect(Date.now() - killed).toBeLessThan(15_000) // it was the whole timeout of the server
  })

  it('is lost after three attempts that a proxy refuses', async () => {
    const { peer, server } = await listening(({ method, headers }, response) => {
      if (method === 'GET' && headers['last-event-id']) return void response.writeHead(503).end()
      if (method === 'GET') return
      const stream = openStream(response)
      stream.raw('retry: 50\nid: e1\ndata:\n\n')
      stream.end()
    })
    expect((await exchangeWith(peer, 'tools/call').failure()).data?.reason).toBe('upstream_stream_lost')
    expect(server.of('GET').filter(({ headers }) => headers['last-event-id'] === 'e1')).toHaveLength(3)
  })

  it('is lost where it had no ids', async () => {
    const { peer } = await listening((_, response) => openStream(response).end())
    expect((await exchangeWith(peer, 'tools/call').failure()).data?.reason).toBe('upstream_stream_lost')
  })

  it('times out when polling brings nothing for too long', async () => {
    const { upstream } = await connect(
      legacy((_, response) => {
        const stream = openStream(response)
        stream.raw('retry: 60\nid: e1\ndata:\n\n')
        stream.end()
      }),
      { timeoutMs: 300 },
    )
    const call = exchangeWith(await upstream.open(dedicated), 'tools/call')
    expect((await call.failure()).data?.reason).toBe('upstream_timeout')
  })

  it('is opened again if it is the GET stream, from the last event on', async () => {
    const { server, peer, stream, streams } = await listening(({ headers, method }, response) => {
      expect([method, headers['last-event-id']]).toEqual(['GET', 'g7'])
      streams.push(openStream(response))
    })
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated })
    stream.event(notice('notifications/message', { n: 1 }), 'retry: 50\nid: g7\n')
    await listen.notice('notifications/message')
    stream.end()
    expect((await server.arrived('GET', 2)).headers['last-event-id']).toBe('g7')
    streams[1]?.event(notice('notifications/tools/list_changed', {}))
    await listen.notice('notifications/tools/list_changed')
  })
})

describe('a session the server forgot', () => {
  const forgetful: (known: () => string, status?: number) => Script =
    (known, status = 404) =>
    (arrived, response) => {
      if (arrived.headers['mcp-session-id'] === known()) return answerOk(arrived, response)
      sendJson(response, failure(null, -32001, 'Session not found'), status)
    }

  it.each([404, 400])('is replaced on %d, once for all callers, and the calls run once', async status => {
    let known = 's1'
    const { server, peer } = await listening(forgetful(() => known, status))
    await exchangeWith(peer, 'logging/setLevel', { params: { level: 'error' } }).result()
    await exchangeWith(peer, 'resources/subscribe', { params: { uri: 'a:1' } }).result()
    await exchangeWith(peer, 'resources/subscribe', { params: { uri: 'a:2' } }).result()
    await exchangeWith(peer, 'resources/unsubscribe', { params: { uri: 'a:2' } }).result()
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated })
    known = 's2'
    const calls = [1, 2, 3].map(() => exchangeWith(peer, 'tools/call'))
    for (const call of calls) expect(await call.result()).toEqual({ ok: true })
    await listen.notice('notifications/tools/list_changed')
    expect(server.of('initialize')).toHaveLength(2)
    const again = server.arrivals.filter(({ headers }) => headers['mcp-session-id'] === 's2')
    const said = again.map(({ method, body }) => body.method ?? method)
    expect(said.slice(0, 4)).toEqual(['GET', 'notifications/initialized', 'resources/subscribe', 'logging/setLevel'])
    expect(said.filter(method => method === 'tools/call')).toHaveLength(3)
    expect(again.find(({ body }) => body.method === 'resources/subscribe')?.body.params).toEqual({ uri: 'a:1' })
  })

  it('is not replaced again for calls that find out late', async () => {
    const late: (() => void)[] = []
    const { server, peer } = await listening((arrived, response) => {
      if (arrived.headers['mcp-session-id'] === 's2') return answerOk(arrived, response)
      const refuse = () => sendJson(response, failure(null, -32001, 'Session not found'), 404)
      if (arrived.body.params?.name === 'late') late.push(refuse)
      else refuse()
    })
    const slow = exchangeWith(peer, 'tools/call', { params: { name: 'late' } })
    await server.arrived('tools/call')
    expect(await exchangeWith(peer, 'tools/call').result()).toEqual({ ok: true })
    for (const refuse of late) refuse()
    expect(await slow.result()).toEqual({ ok: true })
    expect(server.of('initialize')).toHaveLength(2)
  })

  it('fails the calls it had taken, and no others', async () => {
    let known = 's1'
    const inner = forgetful(() => known)
    const { server, peer } = await listening((arrived, response) => {
      if (arrived.body.params?.name === 'slow') openStream(response)
      else inner(arrived, response)
    })
    const slow = exchangeWith(peer, 'tools/call', { params: { name: 'slow' } })
    await server.arrived('tools/call')
    await exchangeWith(peer, 'tools/list').result()
    known = 's2'
    expect(await exchangeWith(peer, 'tools/call').result()).toEqual({ ok: true })
    expect((await slow.failure()).data).toEqual({ reason: 'upstream_lost', upstream: 'far' })
  })

  it('is replaced once for each call', async () => {
    const { server, peer } = await listening(forgetful(() => 'none'))
    expect((await exchangeWith(peer, 'tools/call').failure()).message).toContain('Session not found')
    expect(server.of('initialize')).toHaveLength(2)
    expect(server.of('tools/call')).toHaveLength(2)
  })

  it('is replaced also when only the GET stream finds out', async () => {
    const { server, peer, stream, streams } = await listening()
    const listen = exchangeWith(peer, 'subscriptions/listen', { caller: dedicated })
    const inner = legacy(answerOk, {
      sessions: ['s2'],
      listen: (_, response) => void streams.push(openStream(response)),
    })
    server.become((arrived, response) => {
      if (arrived.method === 'GET' && arrived.headers['mcp-session-id'] === 's1') response.writeHead(404).end()
      else inner(arrived, response)
    })
    stream.raw('retry: 50\n\n')
    stream.end()
    await listen.notice('notifications/tools/list_changed')
    streams[1]?.event(notice('notifications/message', {}))
    await listen.notice('notifications/message')
  })

  it('does not take an unknown method for a lost session', async () => {
    const { server, peer } = await listening(({ body }, response) =>
      sendJson(response, failure(body.id, -32601, 'no'), 404),
    )
    expect(await exchangeWith(peer, 'acme/do').failure()).toMatchObject({ code: -32601 })
    expect(server.of('initialize')).toHaveLength(1)
  })
})

describe('a server whose streams do not end', () => {
  const endless = (response: ServerResponse) => {
    const stream = openStream(response)
    const timer = setInterval(() => stream.raw(': still here\n\n'), 20)
    response.on('close', () => clearInterval(timer))
    return stream
  }

  it('keeps neither the handshake waiting nor its connections', async () => {
    const server = await scriptedServer((arrived, response) => {
      const { id, method } = arrived.body
      if (arrived.method !== 'POST') return void response.writeHead(405).end()
      const stream = endless(response)
      const initialized = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
      if (method === 'initialize') stream.event(result(id, initialized))
    })
    const far = { kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'legacy', timeoutMs: 2000 } as const
    const upstream = connectRemote({ name: 'far', ...far }, { log: SILENT })
    closing.push(
      () => server.close(),
      () => upstream.close(),
    )
    expect((await upstream.open(callerOf())).revision).toBe('2025-11-25')
    await server.until(() => server.of('POST').every(({ isGone }) => isGone), 'the streams to be closed')
    expect(server.of('POST').map(({ body }) => body.method)).toEqual(['initialize', 'notifications/initialized'])
  })
})
