import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Abort } from '../../protocol/cancellation.ts'
import { NoAnswer, type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Caller, Exchange, Frame, Peer } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json, type PlainObject } from '../../wire/json/json.ts'
import { SharedListens } from './shared-listens.ts'

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const UPDATED = 'notifications/resources/updated'
const TOOLS = 'notifications/tools/list_changed'
const LOST = new NoAnswer(rpcError('internal', 'the server is gone', Json.of({ reason: 'upstream_stream_lost' })))

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const callerOf = (over: Partial<Caller> = {}): Caller => ({
  workspace: 'w',
  principal: 'ann',
  revision: MODERN,
  capabilities: Json.empty,
  headers: new Map(),
  ...over,
})

/** A modern server that keeps what it is sent; by default it acknowledges everything at once. */
const modernServer = () => {
  const requests: Exchange[] = []
  let respond = (exchange: Exchange): void => acknowledge(exchange)
  const acknowledge = (exchange: Exchange, notifications = exchange.params.get('notifications') ?? Json.empty): void =>
    void exchange.sink({ kind: 'notice', method: ACKNOWLEDGED, params: Json.of({ notifications }) })
  const peer: Peer = {
    revision: MODERN,
    asks: false,
    dispatch: exchange => {
      requests.push(exchange)
      respond(exchange)
    },
  }
  let refusal: Error | undefined
  const upstream = {
    open: async () => {
      if (refusal) throw refusal
      return peer
    },
    close: async () => {},
  }
  const listens = new SharedListens(upstream)
  const open = (): Exchange[] => requests.filter(({ signal }) => !signal.reason)
  return {
    requests,
    /** Requests that were not ended by the gateway. */
    open,
    acknowledge,
    reconnect: () => listens.reconnect(),
    filters: () => open().map(({ params }) => params.get('notifications')?.toValue()),
    onListen: (next: (exchange: Exchange) => void) => {
      respond = next
    },
    refuse: (error: Error | undefined) => {
      refusal = error
    },
    say: (method: string, params: PlainObject = {}) => {
      for (const { sink } of open()) void sink({ kind: 'notice', method, params: Json.of(params) })
    },
    listen: async (notifications: PlainObject, caller: Partial<Caller> = {}, sink?: Exchange['sink']) => {
      const frames: Frame[] = []
      const abort = new Abort()
      const take = (frame: Frame): void | Promise<void> => {
        frames.push(frame)
        return sink?.(frame)
      }
      const params = Json.of({ notifications })
      listens.listen(
        {
          kind: 'request',
          method: 'subscriptions/listen',
          params,
          caller: callerOf(caller),
          signal: abort,
          sink: take,
        },
        peer,
      )
      await vi.advanceTimersByTimeAsync(0)
      return { frames, abort, told: () => frames.map(toldBy) }
    },
  }
}

/** A frame in short: the method, and the URI or what was acknowledged. */
const toldBy = (frame: Frame): unknown => {
  if (frame.kind !== 'notice') return frame.kind
  if (frame.method === ACKNOWLEDGED) return frame.params.get('notifications')?.toValue()
  const uri = frame.params.get('uri')?.asString()
  return uri === undefined ? frame.method : `${frame.method} ${uri}`
}

test('a thousand listeners of one user are one request; each hears what it asked for', async () => {
  const server = modernServer()
  const tools = await server.listen({ toolsListChanged: true })
  const many = await Promise.all(Array.from({ length: 999 }, () => server.listen({ toolsListChanged: true })))
  const both = await server.listen({ toolsListChanged: true, resourceSubscriptions: ['test://a'] })
  expect(server.open()).toHaveLength(1)
  server.say(TOOLS)
  server.say(UPDATED, { uri: 'test://a/part' })
  server.say(UPDATED, { uri: 'test://ab' })
  expect(tools.told()).toEqual([{ toolsListChanged: true }, TOOLS])
  expect(many.every(({ frames }) => frames.length === 2)).toBe(true)
  expect(both.told()).toEqual([
    { toolsListChanged: true, resourceSubscriptions: ['test://a'] },
    TOOLS,
    `${UPDATED} test://a/part`,
  ])
})

test.each<[string, Partial<Caller>]>([
  ['another principal', { principal: 'bob' }],
  ['other capabilities', { capabilities: Json.of({ elicitation: {} }) }],
])('%s gets a request of its own', async (_name, other) => {
  const server = modernServer()
  await server.listen({ toolsListChanged: true })
  await server.listen({ toolsListChanged: true }, other)
  expect(server.open()).toHaveLength(2)
})

test('anonymous callers share nothing', async () => {
  const server = modernServer()
  for (let i = 0; i < 2; i++) await server.listen({ toolsListChanged: true }, { principal: undefined })
  expect(server.open()).toHaveLength(2)
})

test('a listen with members that are not known passes unchanged and is not shared', async () => {
  const server = modernServer()
  await server.listen({ toolsListChanged: true })
  const tasks = await server.listen({ toolsListChanged: true, taskIds: ['t1'] })
  expect(server.filters()).toEqual([{ toolsListChanged: true }, { toolsListChanged: true, taskIds: ['t1'] }])
  server.say('notifications/tasks', { taskId: 't1' })
  expect(tasks.told()).toEqual([{ toolsListChanged: true, taskIds: ['t1'] }, 'notifications/tasks'])
})

test('a new URI is added before the old request ends, and one that is not needed is dropped five seconds later', async () => {
  const server = modernServer()
  const first = await server.listen({ resourceSubscriptions: ['test://a'] })
  server.onListen(() => {})
  const second = await server.listen({ resourceSubscriptions: ['test://b'] })
  expect(server.filters()).toEqual([
    { resourceSubscriptions: ['test://a'] },
    { resourceSubscriptions: ['test://a', 'test://b'] },
  ])
  expect(second.told()).toEqual([])
  server.acknowledge(server.requests[1] as Exchange)
  expect(server.open()).toEqual([server.requests[1]])
  expect(second.told()).toEqual([{ resourceSubscriptions: ['test://b'] }])
  expect(first.frames).toHaveLength(1)
  server.onListen(exchange => server.acknowledge(exchange))
  second.abort.abort({ kind: 'gone' })
  await vi.advanceTimersByTimeAsync(4900)
  expect(server.filters()).toEqual([{ resourceSubscriptions: ['test://a', 'test://b'] }])
  await vi.advanceTimersByTimeAsync(200)
  expect(server.filters()).toEqual([{ resourceSubscriptions: ['test://a'] }])
  first.abort.abort({ kind: 'gone' })
  expect(server.open()).toEqual([])
  expect(vi.getTimerCount()).toBe(0)
})

test('listeners that come while a request is pending are served by the next one, together', async () => {
  const server = modernServer()
  server.onListen(() => {})
  await server.listen({ resourceSubscriptions: ['test://0'] })
  for (let i = 1; i < 100; i++) await server.listen({ resourceSubscriptions: [`test://${i}`] })
  server.onListen(exchange => server.acknowledge(exchange))
  server.acknowledge(server.requests[0] as Exchange)
  await vi.advanceTimersByTimeAsync(0)
  expect(server.requests).toHaveLength(2)
  expect(server.open()[0]?.params.at('notifications', 'resourceSubscriptions')?.elements()).toHaveLength(100)
})

test('a URI that the server did not honour is asked for again by the next listener', async () => {
  const server = modernServer()
  server.onListen(exchange => server.acknowledge(exchange, Json.of({ toolsListChanged: true })))
  const first = await server.listen({ toolsListChanged: true, resourceSubscriptions: ['test://new'] })
  expect(first.told()).toEqual([{ toolsListChanged: true, resourceSubscriptions: [] }])
  server.onListen(exchange => server.acknowledge(exchange))
  const second = await server.listen({ toolsListChanged: true, resourceSubscriptions: ['test://new'] })
  expect(second.told()).toEqual([{ toolsListChanged: true, resourceSubscriptions: ['test://new'] }])
  expect(server.open()).toHaveLength(1)
})

test('after a lost stream the listen is sent again, and each listener is told what it may have missed', async () => {
  const server = modernServer()
  const one = await server.listen({ toolsListChanged: true, resourceSubscriptions: ['test://a'] })
  const two = await server.listen({ resourceSubscriptions: ['test://a'] })
  void server.requests.at(-1)?.sink({ kind: 'failure', error: LOST })
  server.refuse(new Error('refused'))
  await vi.advanceTimersByTimeAsync(10_000)
  server.refuse(undefined)
  const before = server.requests.length
  await vi.advanceTimersByTimeAsync(30_000)
  expect(server.requests).toHaveLength(before + 1)
  expect(one.told().slice(1)).toEqual([TOOLS, `${UPDATED} test://a`])
  expect(two.told().slice(1)).toEqual([`${UPDATED} test://a`])
})

test('a recovered server is asked at once', async () => {
  const server = modernServer()
  const listener = await server.listen({ toolsListChanged: true })
  server.refuse(new Error('refused'))
  void server.requests[0]?.sink({ kind: 'failure', error: LOST })
  await vi.advanceTimersByTimeAsync(120_000)
  server.refuse(undefined)
  server.reconnect()
  await vi.advanceTimersByTimeAsync(0)
  expect(listener.told()).toEqual([{ toolsListChanged: true }, TOOLS])
})

test('a server that ends listens at once is asked less and less often, and what it changed is announced once a minute', async () => {
  const server = modernServer()
  server.onListen(exchange => {
    server.acknowledge(exchange)
    void exchange.sink({ kind: 'result', result: Json.of({ resultType: 'complete' }) })
  })
  const listener = await server.listen({ toolsListChanged: true })
  await vi.advanceTimersByTimeAsync(600_000)
  expect(server.requests.length).toBeLessThan(50)
  const count = listener.frames.length
  expect(count).toBeGreaterThan(10) // every change of ten minutes is heard of
  expect(count).toBeLessThan(16)
  server.onListen(exchange => server.acknowledge(exchange))
  await vi.advanceTimersByTimeAsync(90_000)
  expect(listener.frames.length).toBe(count + 1)
  await vi.advanceTimersByTimeAsync(600_000)
  expect(listener.frames.length).toBe(count + 1)
})

test.each<[string, RpcError]>([
  ['does not know the method', rpcError('methodNotFound')],
  ['rejects it', rpcError('invalidParams')],
])('a server that %s gets no second request, and its error reaches the listener', async (_name, error) => {
  const server = modernServer()
  server.onListen(exchange => void exchange.sink({ kind: 'failure', error }))
  const listener = await server.listen({ toolsListChanged: true })
  expect(listener.frames).toEqual([{ kind: 'failure', error }])
  await vi.advanceTimersByTimeAsync(600_000)
  expect(server.requests).toHaveLength(1)
  expect(vi.getTimerCount()).toBe(0)
})

test('a server that does not know the method is not asked for each session, but soon again', async () => {
  const server = modernServer()
  const error = rpcError('methodNotFound')
  server.onListen(exchange => void exchange.sink({ kind: 'failure', error }))
  const anonymous = (session: string) => server.listen({ toolsListChanged: true }, { principal: undefined, session })
  for (const session of ['a', 'b', 'c']) expect((await anonymous(session)).frames).toEqual([{ kind: 'failure', error }])
  expect(server.requests).toHaveLength(1)
  server.onListen(exchange => server.acknowledge(exchange))
  await vi.advanceTimersByTimeAsync(10_000)
  expect((await anonymous('d')).told()).toEqual([{ toolsListChanged: true }])
})

test('the message in which a server refused the method is not kept', async () => {
  const server = modernServer()
  const error = { ...rpcError('methodNotFound'), data: inLargeMessage({ hint: 'none' }) }
  server.onListen(exchange => void exchange.sink({ kind: 'failure', error }))
  await server.listen({ toolsListChanged: true }, { principal: undefined, session: 'a' })
  const { frames } = await server.listen({ toolsListChanged: true }, { principal: undefined, session: 'b' })
  const [known] = frames.map(frame => (frame.kind === 'failure' ? frame.error.data : undefined))
  expect(known?.toValue()).toEqual({ hint: 'none' })
  expect(known?.retained).toBeLessThan(100)
})

test('a server that is back is asked at once, although it did not know the method before', async () => {
  const server = modernServer()
  server.onListen(exchange => void exchange.sink({ kind: 'failure', error: rpcError('methodNotFound') }))
  await server.listen({ toolsListChanged: true })
  server.onListen(exchange => server.acknowledge(exchange))
  server.reconnect()
  expect((await server.listen({ toolsListChanged: true })).told()).toEqual([{ toolsListChanged: true }])
})

test('a request that the server rejects because of one listener does not harm the others', async () => {
  const server = modernServer()
  const good = await server.listen({ resourceSubscriptions: ['test://a'] })
  const error = rpcError('invalidParams', 'no such resource')
  server.onListen(exchange =>
    exchange.params.toString().includes('bad')
      ? void exchange.sink({ kind: 'failure', error })
      : server.acknowledge(exchange),
  )
  const bad = await server.listen({ resourceSubscriptions: ['test://bad'] })
  await vi.advanceTimersByTimeAsync(0)
  expect(bad.frames).toEqual([{ kind: 'failure', error }])
  expect(good.told()).toEqual([{ resourceSubscriptions: ['test://a'] }])
  server.say(UPDATED, { uri: 'test://a' })
  expect(good.told().slice(1)).toEqual([`${UPDATED} test://a`])
})

test('a replacement that is not acknowledged ends after five seconds, and the one in force stays', async () => {
  const server = modernServer()
  const first = await server.listen({ resourceSubscriptions: ['test://a'] })
  server.onListen(() => {})
  await server.listen({ resourceSubscriptions: ['test://b'] })
  await vi.advanceTimersByTimeAsync(5000)
  expect(server.filters()).toEqual([
    { resourceSubscriptions: ['test://a'] },
    { resourceSubscriptions: ['test://b'] }, // now alone
  ])
  server.say(UPDATED, { uri: 'test://a' })
  expect(first.told().slice(1)).toEqual([`${UPDATED} test://a`])
})

test('a slow client delays no other, and gets the latest of equal notifications when it reads', async () => {
  const server = modernServer()
  let read: () => void = () => {}
  const slow = await server.listen({ toolsListChanged: true }, {}, () => new Promise<void>(resolve => (read = resolve)))
  const quick = await server.listen({ toolsListChanged: true })
  for (let i = 0; i < 10_000; i++) server.say(TOOLS)
  expect(quick.frames).toHaveLength(10_001)
  expect(slow.frames).toHaveLength(1)
  read()
  await vi.advanceTimersByTimeAsync(0)
  expect(slow.told()).toEqual([{ toolsListChanged: true }, TOOLS])
})

/** The params of a notification that came in a large piece of a stream. */
const inLargeMessage = (params: PlainObject): Json => {
  const message = Json.parse(Buffer.from(JSON.stringify({ params, rest: 'x'.repeat(100_000) })))
  return message.get('params') ?? Json.empty
}

test('what waits for a slow client retains no more than it is', async () => {
  const server = modernServer()
  let read = (): void => {}
  const uris = Array.from({ length: 50 }, (_, at) => `test://${at}`)
  const slow = await server.listen({ resourceSubscriptions: uris }, {}, () => new Promise<void>(done => (read = done)))
  await server.listen({ toolsListChanged: true })
  for (const uri of uris) {
    const params = inLargeMessage({ uri })
    for (const { sink } of server.open()) void sink({ kind: 'notice', method: UPDATED, params })
  }
  for (const _ of uris) {
    read()
    await vi.advanceTimersByTimeAsync(0)
  }
  const heard = slow.frames.flatMap(frame => (frame.kind === 'notice' && frame.method === UPDATED ? frame.params : []))
  expect(heard.map(params => params.get('uri')?.asString())).toEqual(uris)
  for (const params of heard) expect(params.retained).toBeLessThan(1000)
})

test('a client that does not read is let go when too many bytes wait for it; others hear everything', async () => {
  const server = modernServer()
  const uris = Array.from({ length: 10 }, (_, at) => `test://${at}`)
  const slow = await server.listen({ resourceSubscriptions: uris }, {}, () => new Promise<void>(() => {}))
  const fast = await server.listen({ resourceSubscriptions: uris })
  const padding = 'x'.repeat(500_000)
  for (let round = 0; round < 20; round++) for (const uri of uris.slice(0, 7)) server.say(UPDATED, { uri, padding })
  expect(slow.told().at(-1)).not.toBe('result') // the latest of seven resources
  for (const uri of uris) server.say(UPDATED, { uri, padding })
  expect(slow.told().at(-1)).toBe('result')
  expect(fast.frames.filter(frame => frame.kind === 'notice' && frame.method === UPDATED)).toHaveLength(150)
})

test('a client that does not read at all is ended once too much is held for it', async () => {
  const server = modernServer()
  const stuck = await server.listen({ resourceSubscriptions: ['test:'] }, {}, () => new Promise<void>(() => {}))
  for (let i = 0; i < 5000; i++) server.say(UPDATED, { uri: `test:/${i}` })
  expect(stuck.told().at(-1)).toBe('result')
  expect(server.open()).toEqual([])
})
