import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { type Front, type Script, startFront } from '../../../test/support/front.ts'
import { openSession, openStream, send } from '../../../test/support/raw.ts'
import { type AbortReason, NEVER } from '../../protocol/cancellation.ts'
import type { Answer, Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front

const start = async (script: Script = {}, options?: Parameters<typeof startFront>[1]): Promise<string> => {
  front = await startFront(script, options)
  return front.url
}

afterEach(() => front.close())

const answer = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.of({ content: [] }) })
const progress = (exchange: Exchange, n: number) =>
  exchange.sink({
    kind: 'notice',
    method: 'notifications/progress',
    params: Json.of({ progressToken: 1, progress: n }),
  })
const request = (id: number | string, method = 'tools/call', params: object = { name: 'echo' }) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})
const initialize = (protocolVersion: unknown, more: object = {}) =>
  request(0, 'initialize', { protocolVersion, capabilities: {}, ...more })

/** Keeps a call open until the test says so. */
const held = () => {
  const exchanges: Exchange[] = []
  const waiting: ((exchange: Exchange) => void)[] = []
  return {
    hold: (exchange: Exchange) => {
      const next = waiting.shift()
      if (next) next(exchange)
      else exchanges.push(exchange)
    },
    next: (): Promise<Exchange> => {
      const known = exchanges.shift()
      return known ? Promise.resolve(known) : new Promise(resolve => waiting.push(resolve))
    },
  }
}

test.each([
  ['2024-11-05', '2024-11-05'],
  ['2025-03-26', '2025-03-26'],
  ['2025-06-18', '2025-06-18'],
  ['2025-11-25', '2025-11-25'],
  ['2026-07-28', '2025-11-25'],
  ['1999-01-01', '2025-11-25'],
])('initialize with %s gets %s and a session', async (wanted, given) => {
  const url = await start()
  const reply = await send(url, { headers: { accept: 'application/json' }, body: initialize(wanted) })
  expect(reply.status).toBe(200)
  expect(reply.json.result).toEqual({
    protocolVersion: given,
    capabilities: { tools: {} },
    serverInfo: { name: 'far', version: '2' },
    instructions: 'Be kind',
  })
  expect(reply.headers['mcp-session-id']).toMatch(/^[\x21-\x7e]{40,}$/)
})

test('a 2024-11-05 client that accepts events gets one event and nothing else', async () => {
  const url = await start()
  const reply = await send(url, { body: initialize('2024-11-05') })
  expect(reply.headers['content-type']).toBe('text/event-stream')
  const headers = { 'mcp-session-id': String(reply.headers['mcp-session-id']) }
  const pong = await send(url, { headers, body: { jsonrpc: '2.0', id: 7, method: 'ping' } })
  expect(pong.text).toBe('event: message\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n')
})

test('a failed discovery is an error, and opens no session', async () => {
  const url = await start({
    'server/discover': exchange => exchange.sink({ kind: 'failure', error: { code: -32603, message: 'down' } }),
  })
  const reply = await send(url, { body: initialize('2025-11-25') })
  expect([reply.json.error?.message, reply.json.id, reply.headers['mcp-session-id'], front.sessions.size]).toEqual([
    'down',
    0,
    undefined,
    0,
  ])
})

test.each([
  ['without a version', request(0, 'initialize', {}), 400, -32602],
  ['with a version that is no string', initialize(5), 400, -32602],
  ['with capabilities that are no object', initialize('2025-11-25', { capabilities: 'all' }), 400, -32602],
])('initialize %s is rejected', async (_name, body, status, code) => {
  const url = await start()
  const reply = await send(url, { body })
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([status, code, 0])
})

test('initialize inside a session is rejected', async () => {
  const url = await start()
  const { headers } = await openSession(url)
  const reply = await send(url, { headers, body: initialize('2025-11-25') })
  expect([reply.status, reply.json.error?.code]).toEqual([400, -32600])
})

test('a quick result is JSON; ping is answered by the gateway', async () => {
  const url = await start({ 'tools/call': answer })
  const { headers } = await openSession(url)
  const reply = await send(url, { headers, body: request('a') })
  expect([reply.headers['content-type'], reply.json]).toEqual([
    'application/json',
    { jsonrpc: '2.0', id: 'a', result: { content: [] } },
  ])
  expect((await send(url, { headers, body: request(2, 'ping', {}) })).json.result).toEqual({})
  expect(front.seen.map(exchange => exchange.method)).toEqual(['server/discover', 'subscriptions/listen', 'tools/call'])
})

test('a failure has status 200 and the id of its request', async () => {
  const url = await start()
  const { headers } = await openSession(url)
  const reply = await send(url, { headers, body: request(3, 'no/such', {}) })
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([200, -32601, 3])
})

test('a method of another era is not found, and not forwarded', async () => {
  const url = await start()
  const { headers } = await openSession(url)
  const reply = await send(url, { headers, body: request(3, 'server/discover', {}) })
  expect([reply.status, reply.json.error?.code]).toEqual([200, -32601])
  expect(front.seen.filter(exchange => exchange.method === 'server/discover')).toHaveLength(1)
})

test.each([
  ['no session', {}, 400, -32600],
  ['an unknown session', { 'mcp-session-id': 'unknown' }, 404, -32600],
])('a request with %s is rejected', async (_name, headers, status, code) => {
  const url = await start()
  const reply = await send(url, { headers, body: request(9) })
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([status, code, 9])
})

test('a session is not found by another principal or in another workspace', async () => {
  const url = await start({ 'tools/call': answer }, { identify: header => header ?? 'anonymous' })
  const { headers } = await openSession(url)
  expect((await send(url, { headers, body: request(1) })).status).toBe(200)
  expect((await send(url, { headers: { ...headers, authorization: 'mallory' }, body: request(1) })).status).toBe(404)
  expect((await send(`${url}/other`, { headers, body: request(1) })).status).toBe(404)
  expect((await send(url, { method: 'DELETE', headers: { ...headers, authorization: 'mallory' } })).status).toBe(404)
  expect((await send(url, { headers, body: request(1) })).status).toBe(200)
})

test.each(['2025-06-18', '1900-01-01', '2030-01-01'])(
  'version header %s does not fit a 2025-11-25 session',
  async version => {
    const url = await start({ 'tools/call': answer })
    const { headers } = await openSession(url)
    const reply = await send(url, { headers: { ...headers, 'mcp-protocol-version': version }, body: request(1) })
    expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([400, -32600, 1])
  },
)

test('DELETE ends the session: its calls are cancelled, its streams end, its id is unknown', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold })
  const { headers } = await openSession(url)
  const inbox = await openStream(url, { method: 'GET', headers })
  const running = openStream(url, { headers, body: request(1) })
  const exchange = await next()
  expect((await send(url, { method: 'DELETE', headers })).status).toBe(200)
  expect(exchange.signal.reason).toEqual({ kind: 'gone' })
  await inbox.all()
  await (await running).all()
  expect((await send(url, { headers, body: request(2) })).status).toBe(404)
  const standing = front.seen.find(({ method }) => method === 'subscriptions/listen')
  expect(standing?.signal.reason).toEqual({ kind: 'gone' })
})

test('a slow call becomes a stream; with 2025-11-25 it starts with a priming event', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold })
  const { headers } = await openSession(url)
  const pending = openStream(url, { headers, body: request(1) })
  const exchange = await next()
  const stream = await pending
  void progress(exchange, 1)
  answer(exchange)
  const events = await stream.all()
  expect(stream.headers['content-type']).toBe('text/event-stream')
  expect(events.map(({ id, json }) => [id, json.method ?? json.id])).toEqual([
    ['p1_1r31.1', 'notifications/progress'],
    ['p1_1r31.2', 1],
  ])
})

test('older revisions get ids and no empty event', async () => {
  const url = await start({
    'tools/call': exchange => {
      void progress(exchange, 1)
      answer(exchange)
    },
  })
  const { headers } = await openSession(url, '2025-06-18')
  const reply = await send(url, { headers, body: request(1) })
  expect(reply.text).toMatch(/^event: message\nid: p1_1r31\.0\ndata: \{/)
  expect(reply.text).not.toMatch(/retry|data: ?\n/)
})

test('the priming event has an id and empty data, and a stream that stays open has no retry time', async () => {
  const url = await start({
    'tools/call': exchange => {
      void progress(exchange, 1)
      answer(exchange)
    },
  })
  const { headers } = await openSession(url)
  const reply = await send(url, { headers, body: request(1) })
  expect(reply.text).toMatch(/^id: p1_1r31\.0\ndata: ?\n\n/)
  expect(reply.text).not.toContain('retry')
})

test('a server ends the stream of its call with a retry time; the client resumes it for the result', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold })
  const { headers } = await openSession(url)
  const pending = send(url, { headers, body: request(1) })
  const exchange = await next()
  void progress(exchange, 1)
  exchange.closeStream?.(700)
  const { text } = await pending
  expect(text).toMatch(/^id: p1_1r31\.0\ndata: ?\n\n/)
  expect(text).toMatch(/\n\nretry: 700\n\n$/)
  expect(exchange.signal.reason).toBeUndefined()
  exchange.closeStream?.(700) // without a reader there is nothing to end
  const resume = { method: 'GET', headers: { ...headers, 'last-event-id': 'p1_1r31.1' } }
  const resumed = await openStream(url, resume)
  answer(exchange)
  expect((await resumed.all()).map(({ json }) => json.id)).toEqual([1])
})

test.each([
  ['of an older revision, which could not resume it before its first event', '2025-06-18', {}],
  ['that takes no events', '2025-11-25', { accept: 'application/json' }],
])('a server cannot end the stream of a client %s', async (_name, revision, accept) => {
  const url = await start({
    'tools/call': exchange => {
      exchange.closeStream?.(1)
      answer(exchange)
    },
  })
  const { headers } = await openSession(url, revision)
  const { text } = await send(url, { headers: { ...headers, ...accept }, body: request(1) })
  expect(text).toContain('"content"')
  expect(text).not.toContain('retry')
})

test('a call whose connection is lost goes on, and its client resumes the stream', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold })
  const { headers } = await openSession(url)
  const pending = openStream(url, { headers, body: request(1) })
  const exchange = await next()
  const stream = await pending
  void progress(exchange, 1)
  const seen = await stream.next()
  stream.close()
  await expect.poll(() => front.sessions.get(headers['mcp-session-id'] ?? '')?.isBusy).toBe(true)
  void exchange.sink({
    kind: 'notice',
    method: 'notifications/message',
    params: Json.of({ level: 'info', data: 'missed' }),
  })
  const resumed = await openStream(url, { method: 'GET', headers: { ...headers, 'last-event-id': String(seen?.id) } })
  expect((await resumed.next())?.json.method).toBe('notifications/message')
  answer(exchange)
  const rest = await resumed.all()
  expect(rest.map(({ json }) => json.id)).toEqual([1])
  expect(exchange.signal.reason).toBeUndefined()
})

test('a stream that finished without a reader can be resumed once, and not after that', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold })
  const { headers } = await openSession(url)
  const pending = openStream(url, { headers, body: request(1) })
  const exchange = await next()
  ;(await pending).close()
  await expect.poll(() => front.context.activeCalls.size).toBe(1)
  answer(exchange)
  const resume = (id: string) => openStream(url, { method: 'GET', headers: { ...headers, 'last-event-id': id } })
  const events = await (await resume('p1_1r31.0')).all()
  expect(events.map(({ id, json }) => [id, json.id])).toEqual([['p1_1r31.1', 1]])
  expect((await resume('p1_1r31.1')).status).toBe(405)
})

test.each(['p1_9r31.0', 'p1_1r31.99', 'p9.0', 'nonsense', '', 'g1.5', 'g.5'])(
  'Last-Event-ID "%s" is unknown',
  async id => {
    const url = await start()
    const { headers } = await openSession(url)
    const reply = await send(url, { method: 'GET', headers: { ...headers, 'last-event-id': id } })
    expect([reply.status, reply.json.error?.code]).toEqual([400, -32600])
  },
)

test('H5: a call whose client does not reconnect in time is aborted', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold }, { limits: { orphanMs: 50 } })
  const { headers } = await openSession(url)
  const pending = openStream(url, { headers, body: request(1) })
  const exchange = await next()
  ;(await pending).close()
  expect(await new Promise<AbortReason>(resolve => exchange.signal.onAbort(resolve))).toEqual({ kind: 'expired' })
})

test('a call whose client reconnects is not aborted', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold }, { limits: { orphanMs: 60 } })
  const { headers } = await openSession(url)
  const pending = openStream(url, { headers, body: request(1) })
  const exchange = await next()
  ;(await pending).close()
  const resumed = await openStream(url, { method: 'GET', headers: { ...headers, 'last-event-id': 'p1_1r31.0' } })
  const other = await openStream(url, { headers, body: request(2) }) // takes at least the 100 ms until it streams
  expect(exchange.signal.reason).toBeUndefined()
  answer(exchange)
  expect((await resumed.all()).at(-1)?.json.id).toBe(1)
  other.close()
})

test('a call whose client comes back again and again, and leaves each time, is aborted only after a whole orphanMs without it', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold }, { limits: { orphanMs: 1000 } })
  const { headers } = await openSession(url)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const session = front.sessions.get(headers['mcp-session-id'] ?? '')
  const isRead = (): boolean => session?.findStream('p1_1r31')?.hasReader === true
  const pending = openStream(url, { headers, body: request(1) })
  const exchange = await next()
  vi.advanceTimersByTime(100) // it becomes a stream
  await pending
  for (const _ of [1, 2, 3]) {
    exchange.closeStream?.(50)
    expect(isRead()).toBe(false)
    vi.advanceTimersByTime(700)
    expect(exchange.signal.reason).toBeUndefined()
    const polled = await openStream(url, { method: 'GET', headers: { ...headers, 'last-event-id': 'p1_1r31.0' } })
    void progress(exchange, 1)
    await polled.next()
  }
  exchange.closeStream?.(50)
  vi.advanceTimersByTime(999)
  expect(exchange.signal.reason).toBeUndefined()
  vi.advanceTimersByTime(1001)
  expect(exchange.signal.reason).toEqual({ kind: 'expired' })
})

test('notifications/cancelled ends the call and its reply without a response', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold })
  const { headers } = await openSession(url)
  const cancel = (requestId: unknown) =>
    send(url, {
      headers,
      body: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason: 'enough' } },
    })
  const early = send(url, { headers, body: request(1) })
  const first = await next()
  expect((await cancel('1')).status).toBe(202) // "1" is not 1
  expect(first.signal.reason).toBeUndefined()
  expect((await cancel(1)).status).toBe(202)
  expect(first.signal.reason).toEqual({ kind: 'cancelled', text: 'enough' })
  expect([(await early).status, (await early).text]).toEqual([202, ''])

  const pending = openStream(url, { headers, body: request(2) })
  await next()
  const stream = await pending
  await cancel(2)
  expect(await stream.all()).toEqual([])
})

test('an id in use is rejected; the first call goes on, and the id is free afterwards', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold })
  const { headers } = await openSession(url)
  const first = send(url, { headers, body: request(1) })
  const exchange = await next()
  const second = await send(url, { headers, body: request(1) })
  expect([second.status, second.json.error?.code]).toEqual([200, -32600])
  answer(exchange)
  expect((await first).json.result).toEqual({ content: [] })
  const third = send(url, { headers, body: request(1) })
  answer(await next())
  expect((await third).json.result).toEqual({ content: [] })
})

const question = (method: string, params: object, answer: (reply: Answer) => void) =>
  ({ kind: 'question', method, params: Json.of(params as never), withdrawn: NEVER, answer }) as const

test('a question is sent on the stream of its call under an id of the gateway, and its answer is forwarded', async () => {
  const answers: Answer[] = []
  const url = await start({
    'tools/call': exchange => {
      void exchange.sink(
        question('elicitation/create', { message: '?', _meta: { progressToken: 'q' } }, reply => {
          answers.push(reply)
          if (reply.kind !== 'progress') answer(exchange)
        }),
      )
    },
  })
  const { headers } = await openSession(url)
  const stream = await openStream(url, { headers, body: request(1) })
  const asked = await stream.next()
  expect(asked?.json).toMatchObject({ id: 'gw-1', method: 'elicitation/create', params: { message: '?' } })
  await send(url, {
    headers,
    body: { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 'q', progress: 1 } },
  })
  const reply = await send(url, { headers, body: { jsonrpc: '2.0', id: 'gw-1', result: { action: 'decline' } } })
  expect([reply.status, reply.text]).toEqual([202, ''])
  expect((await stream.all()).map(({ json }) => json.id)).toEqual([1])
  expect(answers.map(({ kind }) => kind)).toEqual(['progress', 'result'])
  const again = await send(url, { headers, body: { jsonrpc: '2.0', id: 'gw-1', result: {} } })
  expect([again.status, answers.length]).toEqual([202, 2])
})

test('an answer in another session is ignored', async () => {
  const answers: Answer[] = []
  const url = await start({
    'tools/call': exchange => exchange.sink(question('roots/list', {}, reply => answers.push(reply))),
  })
  const one = await openSession(url)
  const two = await openSession(url)
  const stream = await openStream(url, { headers: one.headers, body: request(1) })
  await stream.next()
  await send(url, { headers: two.headers, body: { jsonrpc: '2.0', id: 'gw-1', result: { roots: [] } } })
  expect(answers).toEqual([])
  await send(url, { headers: one.headers, body: { jsonrpc: '2.0', id: 'gw-1', error: { code: -1, message: 'no' } } })
  expect(answers).toMatchObject([{ kind: 'error', error: { code: -1, message: 'no' } }])
})

test('a client that accepts only JSON gets no question', async () => {
  const url = await start({
    'tools/call': exchange => {
      void progress(exchange, 1)
      void exchange.sink(question('roots/list', {}, () => answer(exchange)))
    },
  })
  const { headers } = await openSession(url)
  const reply = await send(url, { headers: { ...headers, accept: 'application/json' }, body: request(1) })
  expect(reply.json.result).toEqual({ content: [] })
})

test('messages outside a call go to the GET stream, earlier ones too, and list changes once', async () => {
  const url = await start()
  const { headers } = await openSession(url)
  const standing = front.seen.find(({ method }) => method === 'subscriptions/listen') as Exchange
  const changed = () =>
    standing.sink({ kind: 'notice', method: 'notifications/tools/list_changed', params: Json.empty })
  void changed()
  void changed()
  const stream = await openStream(url, { method: 'GET', headers })
  expect((await stream.next())?.json.method).toBe('notifications/tools/list_changed')
  void standing.sink({ kind: 'notice', method: 'notifications/resources/updated', params: Json.of({ uri: 'a:b' }) })
  const updated = await stream.next()
  expect([updated?.id, updated?.json.params]).toEqual(['g1.2', { uri: 'a:b' }])
  stream.close()
  void changed()
  const resumed = await openStream(url, { method: 'GET', headers: { ...headers, 'last-event-id': 'g1.2' } })
  expect((await resumed.next())?.json.method).toBe('notifications/tools/list_changed')
  resumed.close()
})

test('H36: of two GET streams of a session the newer gets each message, and no message comes twice', async () => {
  const url = await start()
  const { headers } = await openSession(url)
  const listen = front.seen.find(({ method }) => method === 'subscriptions/listen') as Exchange
  const update = (uri: string) =>
    listen.sink({ kind: 'notice', method: 'notifications/resources/updated', params: Json.of({ uri }) })
  const older = await openStream(url, { method: 'GET', headers })
  void update('a:1')
  expect((await older.next())?.json.params).toEqual({ uri: 'a:1' })
  const newer = await openStream(url, { method: 'GET', headers })
  void update('a:2')
  expect((await newer.next())?.json.params).toEqual({ uri: 'a:2' })
  expect([older.status, newer.status]).toEqual([200, 200])
  await send(url, { method: 'DELETE', headers })
  expect([await older.all(), await newer.all()]).toEqual([[], []])
})

test('a GET that does not accept event streams is rejected', async () => {
  const url = await start()
  const { headers } = await openSession(url)
  expect((await send(url, { method: 'GET', headers: { ...headers, accept: 'application/json' } })).status).toBe(406)
})

test('later calls of a session carry the log level it has set', async () => {
  const url = await start({
    'tools/call': answer,
    'logging/setLevel': exchange => exchange.sink({ kind: 'result', result: Json.empty }),
  })
  const { headers } = await openSession(url)
  await send(url, { headers, body: request(1, 'logging/setLevel', { level: 'error' }) })
  await send(url, { headers, body: request(2) })
  expect(front.seen.at(-1)?.caller.logLevel).toBe('error')
})

test('silent streams get keep-alive comments', async () => {
  const url = await start({}, { limits: { keepAliveMs: 300 } })
  const { headers } = await openSession(url)
  const stream = await openStream(url, { method: 'GET', headers })
  const comment = await new Promise<string>(resolve =>
    stream.response.on('data', chunk => String(chunk).startsWith(':') && resolve(String(chunk))),
  )
  expect(comment).toBe(':\n\n')
  stream.close()
})

test('an idle session ends, a busy one does not', async () => {
  const url = await start({ 'tools/call': answer }, { limits: { sessionIdleMs: 150, keepAliveMs: 300 } })
  const idle = await openSession(url)
  const busy = await openSession(url)
  const stream = await openStream(url, { method: 'GET', headers: busy.headers })
  await expect.poll(() => front.sessions.size).toBe(1)
  expect((await send(url, { headers: idle.headers, body: request(1) })).status).toBe(404)
  expect((await send(url, { headers: busy.headers, body: request(1) })).status).toBe(200)
  stream.close()
  await expect.poll(() => front.sessions.size).toBe(0)
})

test('an idle session ends, though one that was opened before it is used', async () => {
  const url = await start({ 'tools/call': answer }, { limits: { sessionIdleMs: 1000, keepAliveMs: 300 } })
  const used = await openSession(url)
  const idle = await openSession(url)
  const use = async (): Promise<number> => {
    expect((await send(url, { headers: used.headers, body: request(1) })).status).toBe(200)
    return front.sessions.size
  }
  await expect.poll(use, { interval: 20, timeout: 10_000 }).toBe(1)
  expect((await send(url, { headers: idle.headers, body: request(1) })).status).toBe(404)
})

test('a gateway that shuts down fails the calls that do not finish in time', async () => {
  const { hold, next } = held()
  const url = await start({ 'tools/call': hold })
  const { headers } = await openSession(url)
  const pending = send(url, { headers, body: request(1) })
  await next()
  void front.context.activeCalls.drain(10)
  const reply = await pending
  expect(reply.json.error?.message).toContain('shutting down')
})

test('only the handshake says that its session is being opened', async () => {
  const url = await start({ 'tools/call': answer })
  const { headers } = await openSession(url)
  await send(url, { headers, body: request(1) })
  const [handshake, call] = [front.last('server/discover'), front.last('tools/call')]
  expect(handshake.caller).toMatchObject({ session: call.caller.session, isNewSession: true })
  expect(call.caller).not.toHaveProperty('isNewSession')
})
