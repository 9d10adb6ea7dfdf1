import { afterEach, expect, test } from 'vitest'
import { type Front, type Script, startFront } from '../../../test/support/front.ts'
import { modern, openStream, send } from '../../../test/support/raw.ts'
import type { AbortReason } from '../../protocol/cancellation.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { encodeHeaderValue } from '../../protocol/param-headers.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front

const start = async (script: Script = {}, options?: Parameters<typeof startFront>[1]): Promise<string> => {
  front = await startFront(script, options)
  return front.url
}

afterEach(() => front.close())

const answer = (exchange: Exchange) =>
  exchange.sink({ kind: 'result', result: Json.of({ resultType: 'complete', content: [] }) })
const call = (extra?: Parameters<typeof modern>[3]) =>
  modern(7, 'tools/call', { name: 'echo', arguments: { a: 1 } }, extra)

test('a result that is the first frame is JSON, and its id keeps its type', async () => {
  const url = await start({ 'tools/call': answer })
  const reply = await send(url, { headers: call().headers, body: { ...call().body, id: '7' } })
  expect(reply.status).toBe(200)
  expect(reply.headers['content-type']).toBe('application/json')
  expect(reply.json).toEqual({ jsonrpc: '2.0', id: '7', result: { resultType: 'complete', content: [] } })
})

test('the envelope becomes the caller of the exchange', async () => {
  const url = await start({ 'tools/call': answer })
  const { headers, body } = call({ capabilities: { roots: {} }, meta: { [META.logLevel]: 'warning' } })
  await send(`${url}/other`, { headers: { ...headers, 'mcp-param-region': 'eu', 'x-other': '1' }, body })
  const { caller, params } = front.seen[0] as Exchange
  expect(caller).toMatchObject({ workspace: 'other', principal: 'local', revision: '2026-07-28', logLevel: 'warning' })
  expect(caller.session).toBeUndefined()
  expect(String(caller.capabilities)).toBe('{"roots":{}}')
  expect([...caller.headers]).toEqual([['mcp-param-region', 'eu']])
  expect(params.toValue()).toEqual(body.params)
})

test('a notification makes the response a stream, in order, ended by the result', async () => {
  const url = await start({
    'tools/call': exchange => {
      void exchange.sink({
        kind: 'notice',
        method: 'notifications/progress',
        params: Json.of({ progressToken: 1, progress: 1 }),
      })
      void exchange.sink({
        kind: 'notice',
        method: 'notifications/message',
        params: Json.of({ level: 'info', data: 'x' }),
      })
      answer(exchange)
    },
  })
  const stream = await openStream(url, call())
  expect(stream.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
  const events = await stream.all()
  expect(events.map(({ json, id }) => [json.method ?? json.result?.resultType, id])).toEqual([
    ['notifications/progress', undefined],
    ['notifications/message', undefined],
    ['complete', undefined],
  ])
})

test.each([
  [-32601, 404],
  [-32020, 400],
  [-32021, 400],
  [-32022, 400],
  [-32602, 200],
  [-32603, 200],
  [-1, 200],
])('a failure %i that comes first has status %i', async (code, status) => {
  const url = await start({
    'tools/call': exchange => exchange.sink({ kind: 'failure', error: { code, message: 'no' } }),
  })
  const reply = await send(url, call())
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([status, code, 7])
})

test('a failure after a notification is sent in the stream', async () => {
  const url = await start({
    'tools/call': exchange => {
      void exchange.sink({
        kind: 'notice',
        method: 'notifications/progress',
        params: Json.of({ progressToken: 1, progress: 1 }),
      })
      void exchange.sink({ kind: 'failure', error: { code: -32601, message: 'no' } })
    },
  })
  const stream = await openStream(url, call())
  expect(stream.status).toBe(200)
  expect((await stream.all()).at(-1)?.json.error?.code).toBe(-32601)
})

const { headers: H, body: B } = call()
const withMeta = (meta: Record<string, unknown>) => ({ ...B, params: { ...B.params, _meta: meta } })
const META_OK = B.params._meta as Record<string, unknown>

test.each([
  ['no version header', { ...H, 'mcp-protocol-version': undefined }, B, 400, -32020],
  ['another version in the header', { ...H, 'mcp-protocol-version': '2025-11-25' }, B, 400, -32020],
  ['no Mcp-Method', { ...H, 'mcp-method': undefined }, B, 400, -32020],
  ['another Mcp-Method', { ...H, 'mcp-method': 'tools/list' }, B, 400, -32020],
  ['Mcp-Method in another case', { ...H, 'mcp-method': 'Tools/Call' }, B, 400, -32020],
  ['no Mcp-Name', { ...H, 'mcp-name': undefined }, B, 400, -32020],
  ['another Mcp-Name', { ...H, 'mcp-name': 'echo2' }, B, 400, -32020],
  ['no name in the body', H, { ...B, params: { _meta: META_OK } }, 400, -32602],
  ['no capabilities', H, withMeta({ ...META_OK, [META.clientCapabilities]: undefined }), 400, -32602],
  ['capabilities that are no object', H, withMeta({ ...META_OK, [META.clientCapabilities]: 5 }), 400, -32602],
  ['an unknown log level', H, withMeta({ ...META_OK, [META.logLevel]: 'loud' }), 400, -32602],
  ['no _meta at all', H, { ...B, params: { name: 'echo' } }, 400, -32602],
  ['_meta that is no object', H, withMeta([] as unknown as Record<string, unknown>), 400, -32602],
])('%s is rejected with its id, and nothing is dispatched', async (_name, headers, body, status, code) => {
  const url = await start({ 'tools/call': answer })
  const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >
  const reply = await send(url, { headers: given, body })
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([status, code, 7])
  expect(front.seen).toEqual([])
})

test('an unknown version is rejected with the list of served ones', async () => {
  const url = await start()
  const headers = { ...H, 'mcp-protocol-version': '1900-01-01' }
  const reply = await send(url, { headers, body: withMeta({ ...META_OK, [META.protocolVersion]: '1900-01-01' }) })
  expect([reply.status, reply.json.error?.code]).toEqual([400, -32022])
  expect(reply.json.error?.data).toEqual({
    supported: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'],
    requested: '1900-01-01',
  })
})

test.each([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/result',
  'no/such',
])('%s is not found', async method => {
  const url = await start()
  const reply = await send(url, modern(1, method))
  expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([404, -32601, 1])
})

test('a name that is not ASCII is taken from its encoded header', async () => {
  const url = await start({ 'tools/call': answer })
  const { body } = modern(1, 'tools/call', { name: 'données' })
  const headers = { ...H, 'mcp-name': `=?base64?${Buffer.from('données').toString('base64')}?=` }
  expect((await send(url, { headers, body })).status).toBe(200)
})

test.each([
  ['looks encoded', '=?base64?ZWNobw==?='],
  ['is not ASCII', 'données'],
])('a name or method that %s does not match the same text in its header', async (_, text) => {
  const url = await start({ 'tools/call': answer, [text]: answer })
  const named = { headers: { ...H, 'mcp-name': text }, body: modern(7, 'tools/call', { name: text }).body }
  const { headers, body } = modern(7, text)
  for (const request of [named, { headers: { ...headers, 'mcp-method': text }, body }]) {
    const bytes = Buffer.from(JSON.stringify(request.body)) // with a text, Node.js would send headers in UTF-8, too
    const reply = await send(url, { headers: request.headers, body: bytes })
    expect([reply.status, reply.json.error?.code, reply.json.id]).toEqual([400, -32020, 7])
  }
  expect(front.seen).toEqual([])
})

test('a client that disconnects cancels its call', async () => {
  const gone = new Promise<AbortReason>(resolve => {
    void start({
      'tools/call': exchange => {
        void exchange.sink({
          kind: 'notice',
          method: 'notifications/progress',
          params: Json.of({ progressToken: 1, progress: 1 }),
        })
        exchange.signal.onAbort(resolve)
      },
    }).then(async url => {
      const stream = await openStream(url, call())
      await stream.next()
      stream.close()
    })
  })
  expect(await gone).toEqual({ kind: 'gone' })
})

test('a finished call is not cancelled when its socket closes', async () => {
  const url = await start({ 'tools/call': answer })
  await send(url, call())
  await front.close()
  expect(front.seen[0]?.signal.reason).toBeUndefined()
})

test('every message on a listen stream carries the id of its request, with its type', async () => {
  const url = await start({
    'subscriptions/listen': exchange => {
      void exchange.sink({
        kind: 'notice',
        method: 'notifications/subscriptions/acknowledged',
        params: Json.of({ notifications: { toolsListChanged: true } }),
      })
      void exchange.sink({
        kind: 'notice',
        method: 'notifications/tools/list_changed',
        params: Json.of({ _meta: { [META.subscriptionId]: 99, keep: 1 } }),
      })
    },
  })
  const stream = await openStream(
    url,
    modern('sub-1', 'subscriptions/listen', { notifications: { toolsListChanged: true } }),
  )
  const first = await stream.next()
  const second = await stream.next()
  expect(first?.json.params?._meta).toEqual({ [META.subscriptionId]: 'sub-1' })
  expect(second?.json.params?._meta).toEqual({ keep: 1, [META.subscriptionId]: 'sub-1' })
  void front.context.activeCalls.drain(0)
  const last = await stream.next()
  expect(last?.json).toEqual({
    jsonrpc: '2.0',
    id: 'sub-1',
    result: { resultType: 'complete', _meta: { [META.subscriptionId]: 'sub-1' } },
  })
  expect(await stream.next()).toBeUndefined()
})

test('a client that accepts only JSON gets the result alone', async () => {
  const url = await start({
    'tools/call': exchange => {
      void exchange.sink({
        kind: 'notice',
        method: 'notifications/progress',
        params: Json.of({ progressToken: 1, progress: 1 }),
      })
      answer(exchange)
    },
  })
  const { headers, body } = call()
  const reply = await send(url, { headers: { ...headers, accept: 'application/json' }, body })
  expect([reply.headers['content-type'], reply.json.result?.resultType]).toEqual(['application/json', 'complete'])
})

test('a client that accepts only event streams gets one', async () => {
  const url = await start({ 'tools/call': answer })
  const { headers, body } = call()
  const stream = await openStream(url, { headers: { ...headers, accept: 'text/event-stream' }, body })
  expect((await stream.all()).map(event => event.json.result?.resultType)).toEqual(['complete'])
})

test('a second result of the same call is dropped', async () => {
  const url = await start({
    'tools/call': exchange => {
      answer(exchange)
      answer(exchange)
      void exchange.sink({ kind: 'failure', error: { code: -1, message: 'late' } })
    },
  })
  expect((await send(url, call())).json.result?.resultType).toBe('complete')
})

test('notifications get 202 and are dispatched; cancelled is not', async () => {
  const url = await start()
  const headers = { 'mcp-protocol-version': '2026-07-28' }
  const one = await send(url, { headers, body: { jsonrpc: '2.0', method: 'acme/note', params: { a: 1 } } })
  const two = await send(url, {
    headers,
    body: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
  })
  expect([one.status, one.text, two.status]).toEqual([202, '', 202])
  expect(front.seen.map(exchange => [exchange.kind, exchange.method])).toEqual([['notification', 'acme/note']])
})

test.each([
  ['a batch', [call().body], 400],
  ['a response', { jsonrpc: '2.0', id: 1, result: {} }, 400],
])('%s is rejected', async (_name, body, status) => {
  const url = await start()
  const reply = await send(url, { headers: { 'mcp-protocol-version': '2026-07-28' }, body })
  expect([reply.status, reply.json.error?.code]).toEqual([status, -32600])
})

test.each(['GET', 'DELETE', 'PUT', 'PATCH'])('%s is not a modern method', async method => {
  const url = await start()
  const reply = await send(url, { method, headers: { 'mcp-protocol-version': '2026-07-28', accept: '*/*' } })
  expect([reply.status, reply.json.error?.code]).toEqual([405, -32600])
})

test('a slow client applies backpressure to its call and loses nothing', async () => {
  let isBehind = false
  const url = await start({
    'tools/call': async exchange => {
      const text = 'x'.repeat(1 << 20)
      for (let i = 0; i < 12; i++) {
        const pending = exchange.sink({
          kind: 'notice',
          method: 'notifications/message',
          params: Json.of({ level: 'info', data: text }),
        })
        if (pending) isBehind = true
        await pending
      }
      answer(exchange)
    },
  })
  const stream = await openStream(url, call())
  stream.response.pause()
  await expect.poll(() => isBehind).toBe(true)
  stream.response.resume()
  expect((await stream.all()).length).toBe(13)
})

test('a client that never reads is disconnected and its call cancelled', async () => {
  const gone = new Promise<AbortReason>(resolve => {
    void start(
      {
        'tools/call': async exchange => {
          exchange.signal.onAbort(resolve)
          const text = 'x'.repeat(1 << 20)
          while (!exchange.signal.reason)
            await exchange.sink({
              kind: 'notice',
              method: 'notifications/message',
              params: Json.of({ level: 'info', data: text }),
            })
        },
      },
      { limits: { stallMs: 100 } },
    ).then(async url => {
      const stream = await openStream(url, call())
      stream.response.pause()
    })
  })
  expect(await gone).toEqual({ kind: 'gone' })
})

test('the type of a result and the cache hints of a list are added if the server left them out', async () => {
  const bare = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.of({ tools: [], ttlMs: 7 }) })
  const url = await start({ 'tools/call': bare, 'tools/list': bare })
  expect((await send(url, call())).json.result).toEqual({ tools: [], ttlMs: 7, resultType: 'complete' })
  expect((await send(url, modern(1, 'tools/list'))).json.result).toEqual({
    tools: [],
    ttlMs: 7,
    resultType: 'complete',
    cacheScope: 'private',
  })
})

test.each([[[]], [7], ['text'], [null]])(
  'a listen stream carries its id on a notification whose _meta is %j',
  async _meta => {
    const url = await start({
      'subscriptions/listen': exchange => {
        const params = Json.of({ uri: 'a:b', _meta })
        void exchange.sink({ kind: 'notice', method: 'notifications/resources/updated', params })
        void exchange.sink({ kind: 'result', result: Json.of({ _meta }) })
      },
    })
    const { headers, body } = modern('l', 'subscriptions/listen', { notifications: {} })
    const events = await (await openStream(url, { headers, body })).all()
    expect(events.map(({ json }) => json.params ?? json.result)).toMatchObject([
      { uri: 'a:b', _meta: { [META.subscriptionId]: 'l' } },
      { _meta: { [META.subscriptionId]: 'l' } },
    ])
  },
)

test('a method that is not ASCII is encoded in Mcp-Method like a name in Mcp-Name', async () => {
  const url = await start({ 'données/日本': answer })
  const { headers, body } = modern(1, 'données/日本')
  const named = { ...headers, 'mcp-method': encodeHeaderValue('données/日本') }
  expect((await send(url, { headers: named, body })).json.result).toMatchObject({ resultType: 'complete' })
  const other = { ...headers, 'mcp-method': encodeHeaderValue('données') }
  expect((await send(url, { headers: other, body })).json.error).toMatchObject({ code: -32020 })
})
