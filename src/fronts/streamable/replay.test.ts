import { connect } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import {
  answerEmpty,
  type Front,
  rpcNotification,
  rpcRequest,
  type Script,
  startFront,
} from '../../../test/support/front.ts'
import { openSession, openStream, type RawEvent, send } from '../../../test/support/raw.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { randomKeys, type StateKeys } from '../../stores/state/secret.ts'
import { Json } from '../../wire/json/json.ts'

const cluster = new MemoryCluster()
const keys = randomKeys()
const fronts: Front[] = []

afterEach(async () => {
  for (const front of fronts.splice(0)) await front.close()
})

const HANGING: Script = { 'tools/call': () => {} }

const start = async (script: Script = HANGING, options: Parameters<typeof startFront>[1] = {}) => {
  const store = cluster.join()
  const front = await startFront(script, { ...options, state: { store, keys } })
  fronts.push(front)
  const crash = async (): Promise<void> => {
    cluster.kill(store.members.self)
    await front.kill()
  }
  return { ...front, crash }
}

const progress = (exchange: Exchange, n: number) =>
  exchange.sink({
    kind: 'notice',
    method: 'notifications/message',
    params: Json.of({ level: 'info', data: n }),
  })

const resume = (front: Front, headers: Record<string, string>, id: string | undefined) =>
  openStream(front.url, {
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream', 'last-event-id': id ?? '' },
  })
const listen = (front: Front, headers: Record<string, string>) =>
  openStream(front.url, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } })

/** What a stream says, in short: data of log messages, results, reasons of errors. */
const told = (events: readonly (RawEvent | undefined)[]) =>
  events.map(event => {
    const { params, result, error } = (event?.json ?? {}) as {
      params?: { data: unknown }
      result?: unknown
      error?: { code: number; data?: { reason: string } }
    }
    return params?.data ?? (result ? 'result' : `${error?.code} ${error?.data?.reason}`)
  })

/** A call that has sent three messages. */
const startCall = async (id: number | string = 7) => {
  const first = await start()
  const { headers } = await openSession(first.url)
  const opening = openStream(first.url, { headers, body: rpcRequest(id) })
  const call = await first.whenSeen('tools/call')
  for (const n of [1, 2, 3]) void progress(call, n)
  const stream = await opening
  const events = [await stream.next(), await stream.next(), await stream.next()]
  expect(told(events)).toEqual([1, 2, 3])
  return { first, headers, call, events, stream }
}

test.each(['7', '"seven"', '"\\"quoted\\" ünï"', '12345678901234567890'])(
  'a lost call %s ends with the events after the last one and a typed error, once',
  async id => {
    const first = await start()
    const { headers } = await openSession(first.url)
    const body = JSON.stringify(rpcRequest(1)).replace('"id":1', `"id":${id}`)
    const opening = openStream(first.url, { headers, body })
    const call = await first.whenSeen('tools/call')
    for (const n of [1, 2, 3]) void progress(call, n)
    const stream = await opening
    const read = await stream.next()
    await first.crash()
    const second = await start()
    const resumed = await resume(second, headers, read?.id)
    const events = await resumed.all()
    expect(told(events)).toEqual([2, 3, '-32603 gateway_restarted'])
    expect(events[2]?.data).toContain(`"id":${id},"error"`)
    // Again, as a client does whose connection was lost meanwhile: the same events, and no second error.
    expect(told(await (await resume(second, headers, read?.id)).all())).toEqual([2, 3, '-32603 gateway_restarted'])
    expect(told(await (await resume(second, headers, events[1]?.id)).all())).toEqual(['-32603 gateway_restarted'])
    expect((await resume(second, headers, events[2]?.id)).status).toBe(405)
  },
)

test('a result that was sent before the crash is replayed, and no error follows', async () => {
  const { first, headers, call, events } = await startCall()
  void answerEmpty(call)
  await first.crash()
  const second = await start()
  expect(told(await (await resume(second, headers, events[1]?.id)).all())).toEqual([3, 'result'])
})

test('a call that a planned stop ends has its error on the stream', async () => {
  const first = await start(HANGING)
  const { headers } = await openSession(first.url)
  const opening = openStream(first.url, { headers, body: rpcRequest(1) })
  await first.whenSeen('tools/call')
  const stream = await opening
  const closing = first.close()
  const [end] = await stream.all()
  expect(end?.json.error?.code).toBe(-32603)
  await closing
  const second = await start()
  expect((await resume(second, headers, end?.id)).status).toBe(405)
})

test('each request of a lost batch gets its answer or an error', async () => {
  const first = await start({
    'tools/call': exchange => {
      if (exchange.params.get('name')?.asString() === 'quick') void answerEmpty(exchange)
    },
  })
  const { headers } = await openSession(first.url, '2025-03-26')
  const body = [rpcRequest(1, 'tools/call', { name: 'quick' }), rpcRequest('two'), rpcRequest(3)]
  const stream = await openStream(first.url, { headers, body })
  const answer = await stream.next()
  expect(answer?.json).toMatchObject({ id: 1, result: {} })
  await first.crash()
  const second = await start()
  const events = await (await resume(second, headers, answer?.id)).all()
  expect(events.map(({ json }) => [json.id, json.error?.code])).toEqual([
    ['two', -32603],
    [3, -32603],
  ])
  expect((await resume(second, headers, events[1]?.id)).status).toBe(405)
})

test('a request with a long id gets its error, too', async () => {
  const id = 'x'.repeat(500)
  const { first, headers, events } = await startCall(id)
  expect(events[0]?.id?.length).toBeLessThan(40)
  await first.crash()
  const [error] = await (await resume(await start(), headers, events[2]?.id)).all()
  expect(error?.json).toMatchObject({ id, error: { code: -32603, data: { reason: 'gateway_restarted' } } })
})

test('questions of a lost call are not replayed, and an answer to one answers no other', async () => {
  const first = await start()
  const { headers } = await openSession(first.url, '2025-11-25', { elicitation: {} })
  const opening = openStream(first.url, { headers, body: rpcRequest(1) })
  const call = await first.whenSeen('tools/call')
  const answers: unknown[] = []
  const ask = (exchange: Exchange) =>
    exchange.sink({
      kind: 'question',
      method: 'elicitation/create',
      params: Json.of({ message: 'Sure?' }),
      withdrawn: { reason: undefined, onAbort: () => () => {} },
      answer: answer => answers.push(answer),
    })
  void progress(call, 1)
  void ask(call)
  const stream = await opening
  const [read, question] = [await stream.next(), await stream.next()]
  expect(question?.json.method).toBe('elicitation/create')
  await first.crash()
  const second = await start()
  expect(told(await (await resume(second, headers, read?.id)).all())).toEqual(['-32603 gateway_restarted'])
  const again = openStream(second.url, { headers, body: rpcRequest(2) })
  void ask(await second.whenSeen('tools/call'))
  const asked = await (await again).next()
  expect(asked?.json.id).not.toBe(question?.json.id)
  await send(second.url, { headers, body: { jsonrpc: '2.0', id: question?.json.id, result: {} } })
  expect(answers).toEqual([])
  ;(await again).close()
})

test('the server-to-client stream is replayed and goes on, over two restarts', async () => {
  const first = await start()
  const { headers } = await openSession(first.url)
  const stream = await listen(first, headers)
  const standing = await first.whenSeen('subscriptions/listen')
  for (const n of [1, 2, 3]) void progress(standing, n)
  const [read] = [await stream.next(), await stream.next(), await stream.next()]
  await first.crash()
  const second = await start()
  await send(second.url, { headers, body: rpcNotification('notifications/initialized') })
  void progress(await second.whenSeen('subscriptions/listen'), 4)
  await second.crash()
  const third = await start()
  const resumed = await resume(third, headers, read?.id)
  void progress(await third.whenSeen('subscriptions/listen'), 5)
  const events = [await resumed.next(), await resumed.next(), await resumed.next(), await resumed.next()]
  expect(told(events)).toEqual([2, 3, 4, 5])
  expect(new Set(events.map(event => event?.id)).size).toBe(4)
  resumed.close()
})

test.each([
  ['malformed', 'nonsense', /not an event id/],
  ['malformed', 'p1_1r7b7d.1', /not an event id/], // the request id is an object
  ['malformed', 'p1_1rzz.1', /not an event id/],
  ['malformed', '', /not an event id/],
  ['of a former version', 'g.5', /not an event id/],
  ['of a stream to come', 'p99_1r31.0', /no such stream/],
  ['of a stream that was never', 'p1_99.0', /no such stream/],
])('a Last-Event-ID that is %s (%s) gets 400 with the reason', async (_what, id, reason) => {
  const first = await start()
  const { headers } = await openSession(first.url)
  await first.crash()
  const second = await start()
  const reply = await send(second.url, {
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream', 'last-event-id': id },
  })
  expect([reply.status, reply.json.error?.message]).toEqual([400, expect.stringMatching(reason)])
})

const FORGED: readonly [string, (id: string) => string][] = [
  ['of another session', id => id],
  ['of another request', id => id.replace('r37', 'r38')],
  ['of another stream', id => id.replace('p1_1', 'p1_2')],
  ['with another tag', id => id.replace(/s(.)/, (_, digit) => `s${digit === '0' ? '1' : '0'}`)],
  ['without its tag', id => id.replace(/s[0-9a-f]+/, '')],
  ['of another server stream', () => 'g1s0123456789abcdef.0'],
  ['of the server stream, without its tag', () => 'g1.0'],
]

test.each(FORGED)(
  'a Last-Event-ID %s gets 400 with the reason, and takes nothing from its stream',
  async (of, forge) => {
    const { first, headers, events } = await startCall()
    const { headers: others } = await openSession(first.url)
    await first.crash()
    const second = await start()
    const id = events[0]?.id ?? ''
    const reply = await send(second.url, {
      method: 'GET',
      headers: {
        ...(of === 'of another session' ? others : headers),
        accept: 'text/event-stream',
        'last-event-id': forge(id),
      },
    })
    expect([reply.status, reply.json.error?.message]).toEqual([400, expect.stringMatching(/no such stream/)])
    expect(told(await (await resume(second, headers, id)).all())).toEqual([2, 3, '-32603 gateway_restarted'])
  },
)

test('streams of a former secret are resumed while it is accepted', async () => {
  const [former, next] = [randomKeys(), randomKeys()]
  const rotated: StateKeys = { ...next, ids: [...next.ids, ...former.ids] }
  const ring = async (given: StateKeys) => {
    const store = cluster.join()
    const front = await startFront(HANGING, { state: { store, keys: given } })
    fronts.push(front)
    const crash = async (): Promise<void> => {
      cluster.kill(store.members.self)
      await front.kill()
    }
    return { ...front, crash }
  }
  const first = await ring(former)
  const { headers } = await openSession(first.url)
  const opening = openStream(first.url, { headers, body: rpcRequest(7) })
  void progress(await first.whenSeen('tools/call'), 1)
  const read = await (await opening).next()
  const server = await listen(first, headers)
  const listening = await first.whenSeen('subscriptions/listen')
  void progress(listening, 2)
  const heard = await server.next()
  await first.crash()
  const second = await ring(rotated)
  expect(told(await (await resume(second, headers, read?.id)).all())).toEqual(['-32603 gateway_restarted'])
  const again = await resume(second, headers, heard?.id)
  void progress(await second.whenSeen('subscriptions/listen'), 3)
  expect(told([await again.next()])).toEqual([3])
  again.close()
})

test('a Last-Event-ID whose next events are gone gets 400', async () => {
  const { first, headers, events } = await startCall()
  await first.crash()
  const second = await start()
  const [, { records }] = [0, cluster]
  const key = [...records.keys()].find(name => name.endsWith(headers['mcp-session-id'] ?? ''))
  const [stream = ''] = (events[0]?.id ?? '').split('.')
  const kept = cluster.journal.read(key ?? '', stream, 1, 10)
  cluster.journal.drop(key ?? '', stream)
  cluster.journal.append(
    key ?? '',
    stream,
    3,
    kept.slice(-1).map(({ data }) => data),
  )
  const reply = await resume(second, headers, events[0]?.id)
  expect(reply.status).toBe(400)
  reply.close()
})

test('a stream that was longer than its log in memory is replayed from the store', async () => {
  const limits = { streamLogEvents: 20 }
  const first = await start(HANGING, { limits })
  const { headers } = await openSession(first.url)
  const opening = openStream(first.url, { headers, body: rpcRequest(1) })
  const call = await first.whenSeen('tools/call')
  for (let n = 0; n < 500; n++) await progress(call, n)
  const stream = await opening
  const read = await stream.next()
  await first.crash()
  const events = await (await resume(await start(HANGING, { limits }), headers, read?.id)).all()
  expect(told(events)).toEqual([...Array.from({ length: 499 }, (_, n) => n + 1), '-32603 gateway_restarted'])
})

test('headers and the first event leave in one write', async () => {
  const front = await start()
  const { headers } = await openSession(front.url)
  const chunks: string[] = []
  const socket = connect(front.port, '127.0.0.1')
  socket.on('data', chunk => chunks.push(chunk.toString()))
  const lines = Object.entries({ ...headers, host: `127.0.0.1:${front.port}`, accept: 'text/event-stream' })
  socket.write(`GET /mcp HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`)
  await expect.poll(() => chunks.length).toBeGreaterThan(0)
  expect(chunks[0]).toMatch(/text\/event-stream[\s\S]*id: g1s[0-9a-f]{16}\.0/)
  socket.destroy()
})
