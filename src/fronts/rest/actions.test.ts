import { request } from 'node:http'
import { afterEach, describe, expect, test } from 'vitest'
import { type Front, type Script, startFront } from '../../../test/support/front.ts'
import { openStream, type RawRequest, send } from '../../../test/support/raw.ts'
import { DEFAULT_LISTEN, type Limits } from '../../config/snapshot.ts'
import type { Admission } from '../../protocol/admission.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { NEWEST_LEGACY } from '../../protocol/revisions.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json, type Plain, type PlainObject } from '../../wire/json/json.ts'
import { createRequestGuard } from '../http/guard.ts'
import { listen } from '../http/listen.ts'
import { createRequestReader } from '../http/read-request.ts'
import { createActionRoutes } from './actions.ts'

let front: Front
let stop: () => Promise<void>
let url: string
const start = async (script: Script = {}, options: { admission?: Admission; limits?: Partial<Limits> } = {}) => {
  front = await startFront(script, options)
  const where = { ...DEFAULT_LISTEN, port: 0 }
  const listener = await listen({
    listen: where,
    limits: front.context.limits,
    guard: createRequestGuard(where),
    routes: createActionRoutes(front.context, {
      readRequest: createRequestReader(front.context, () => options.admission ?? { kind: 'in', principal: 'ada' }),
      workspaces: () => ['default', 'other'],
      serversOf: workspace => ({ default: ['far'], other: ['near'] })[workspace],
      visibleTo: () => ['default', 'other'],
      version: '1',
    }),
    log: SILENT,
  })
  url = `http://127.0.0.1:${listener.port}/actions`
  stop = () => listener.close()
}
afterEach(async () => {
  await front.close()
  await stop()
})

const result = (exchange: Exchange, value: Plain): void =>
  void exchange.sink({ kind: 'result', result: Json.of(value) })
const failing =
  (code: number, message = 'no', data?: Plain): Script[string] =>
  exchange =>
    void exchange.sink({
      kind: 'failure',
      error: { code, message, data: data === undefined ? undefined : Json.of(data) },
    })
const listing =
  (...names: string[]): Script[string] =>
  exchange =>
    result(exchange, { tools: names.map(name => ({ name, inputSchema: { type: 'object' } })) })
const call = (path: string, options: RawRequest = {}) =>
  send(`${url}${path}`, { ...options, headers: { accept: '*/*', ...options.headers } })
const HELLO = { content: [{ type: 'text', text: 'hello' }] }

describe('a REST call', () => {
  test('is a tools/call, and its response the result as the server wrote it', async () => {
    const written = Buffer.from('{ "content":[], "structuredContent":{"n":12345678901234567890, "x":1.0} }')
    await start({ 'tools/call': exchange => void exchange.sink({ kind: 'result', result: Json.parse(written) }) })
    const reply = await call('/echo', { body: '{"message":"hi","n":1.0}', headers: { traceparent: 'a', cookie: 'b' } })
    expect([reply.status, reply.text]).toEqual([200, written.toString()])
    const [{ method, params, caller }] = front.seen as [Exchange]
    expect([method, params.toString()]).toEqual(['tools/call', '{"name":"echo","arguments":{"message":"hi","n":1.0}}'])
    expect(caller).toMatchObject({ workspace: 'default', principal: 'ada', revision: NEWEST_LEGACY })
    expect(caller.session).toBeUndefined()
    expect(caller.capabilities).toBe(Json.empty)
    expect([...caller.headers]).toEqual([['traceparent', 'a']])
  })

  test.each([
    ['/a', 'default', 'a'],
    ['/other/a', 'other', 'a'],
    ['/other/near/a', 'other', 'a'],
    ['/default/far%2Fa%20b', 'default', 'far/a b'],
    ['/default/openapi.json/', undefined, undefined],
  ])('to %s calls %s', async (path, workspace, name) => {
    await start({ 'tools/call': exchange => result(exchange, HELLO) })
    const { status } = await call(path, { body: {} })
    expect(status).toBe(name === undefined ? 404 : 200)
    expect(front.seen.map(({ caller, params }) => [caller.workspace, params.get('name')?.asString()])).toEqual(
      name === undefined ? [] : [[workspace, name]],
    )
  })

  test('without a body has no arguments', async () => {
    await start({ 'tools/call': exchange => result(exchange, HELLO) })
    const reply = await send(`${url}/ping`, { headers: { 'content-type': '', accept: '' } })
    expect([reply.status, front.seen[0]?.params.get('arguments')?.toString()]).toEqual([200, '{}'])
  })

  test('whose tool reports an error is 200 like any other', async () => {
    const failed = { content: [{ type: 'text', text: 'The disk is full' }], isError: true }
    await start({ 'tools/call': exchange => result(exchange, failed) })
    const { status, text } = await call('/save', { body: {} })
    expect([status, JSON.parse(text)]).toEqual([200, failed])
    expect(front.seen.length).toBe(1)
  })

  test.each<[string, number, string, RawRequest]>([
    ['/a', 400, 'Parse error', { body: '{' }],
    ['/a', 400, 'must be a JSON object', { body: '[1]' }],
    ['/a', 400, 'must be a JSON object', { body: '"x"' }],
    ['/a', 415, 'application/json', { body: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } }],
    ['/a', 413, 'Too Large', { body: JSON.stringify({ a: 'x'.repeat(2000) }) }],
    ['/a', 406, 'application/json', { body: {}, headers: { accept: 'text/html' } }],
    ['', 404, 'POST to /actions/<tool>', { body: {} }],
    ['/a', 405, 'POST', { method: 'GET' }],
    ['/a', 405, 'POST', { method: 'DELETE' }],
    ['/openapi.json', 405, 'GET', { body: {} }],
    ['/nowhere/a', 404, 'no workspace "nowhere"', { body: {} }],
    ['/nowhere/openapi.json', 404, 'no workspace "nowhere"', { method: 'GET' }],
    ['/default/near/a', 404, 'no server "near" in default', { body: {} }],
    ['/', 404, 'POST to /actions/<tool>', { body: {} }],
    ['/a/b/c/d', 404, 'POST to /actions/<tool>', { body: {} }],
    ['/%zz', 404, 'POST to /actions/<tool>', { body: {} }],
  ])('%s is rejected with %i: %s', async (path, status, words, options) => {
    await start({}, { limits: { bodyBytes: 1000 } })
    const reply = await call(path, options)
    expect(reply.status).toBe(status)
    expect(reply.json.error?.message).toContain(words)
    if (status === 405) expect(reply.headers.allow).toBe(words)
    expect(front.seen).toEqual([])
  })

  test.each([401, 403, 429])('of a rejected caller gets %i and the reason', async status => {
    const headers = { 'www-authenticate': 'Bearer', 'retry-after': '3' }
    await start({}, { admission: { kind: 'out', status, error: { code: -32001, message: 'No' }, headers } })
    const reply = await call('/a', { body: {} })
    expect([reply.status, reply.json.error?.message, reply.headers['retry-after']]).toEqual([status, 'No', '3'])
    expect((await call('/openapi.json', { method: 'GET' })).status).toBe(status)
    expect(front.seen).toEqual([])
  })
})

describe('a call that fails', () => {
  test.each<[string, number, PlainObject | undefined, number]>([
    ['a server that cannot be reached', -32603, { reason: 'upstream_unreachable' }, 502],
    ['a server that broke off', -32603, { reason: 'upstream_stream_lost' }, 502],
    ['a server that is silent', -32603, { reason: 'upstream_timeout' }, 504],
    ['a server that has too much to do', -32603, { reason: 'upstream_busy', retryAfterMs: 1500 }, 503],
    ['a server that is switched off', -32603, { reason: 'unavailable' }, 503],
    ['a server with an error of its own', -32000, undefined, 502],
    ['an unknown reason', -32602, { reason: 'constructor' }, 422],
    ['a server without tools', -32601, undefined, 404],
    ['a tool that asks', -32603, { requiredCapabilities: { elicitation: {} } }, 501],
    ['a tool that wants a page opened', -32042, undefined, 501],
  ])('%s: the status says which side failed', async (_name, code, data, status) => {
    await start({ 'tools/call': failing(code, 'Because', data) })
    const reply = await call('/a', { body: {} })
    expect([reply.status, reply.json.error?.code, reply.json.error?.message]).toEqual([status, code, 'Because'])
    if (data) expect(reply.json.error?.data).toEqual(data)
    expect(reply.headers['retry-after']).toBe(data && 'retryAfterMs' in data ? '2' : undefined)
  })

  test('for wrong arguments is 422, and 404 if there is no such tool', async () => {
    await start({
      'tools/call': failing(-32602, 'Wrong'),
      'tools/list': exchange =>
        exchange.params.has('cursor')
          ? listing('b')?.(exchange)
          : result(exchange, { tools: [{ name: 'a' }], nextCursor: 'next' }),
    })
    for (const tool of ['/a', '/b', '/far__b', '/far%2Fb']) {
      const reply = await call(tool, { body: {} })
      expect([tool, reply.status, reply.json.error?.message]).toEqual([tool, 422, 'Wrong'])
    }
    for (const tool of ['/c', '/near__b', '/default/toString']) {
      const reply = await call(tool, { body: {} })
      expect([tool, reply.status]).toEqual([tool, 404])
      expect(reply.json.error?.message).toMatch(/^Unknown tool: .*; GET \/actions\/default\/openapi.json lists/)
    }
  })

  test('keeps the message of the server if the tools cannot be listed', async () => {
    await start({ 'tools/call': failing(-32602, 'Wrong'), 'tools/list': failing(-32603) })
    const reply = await call('/a', { body: {} })
    expect([reply.status, reply.json.error?.message]).toEqual([422, 'Wrong'])
  })

  test('is 404 too if the server reports an unknown tool as a tool error', async () => {
    const said = { content: [{ type: 'text', text: 'MCP error -32602: Tool c not found' }], isError: true }
    await start({ 'tools/call': exchange => result(exchange, said), 'tools/list': listing('a') })
    expect((await call('/c', { body: {} })).status).toBe(404)
    expect((await call('/a', { body: {} })).status).toBe(200)
  })

  test('answers a question with an error: a REST caller cannot be asked', async () => {
    const answers: unknown[] = []
    await start({
      'tools/call': exchange =>
        void exchange.sink({
          kind: 'question',
          method: 'elicitation/create',
          params: Json.empty,
          withdrawn: exchange.signal,
          answer: answer => {
            answers.push(answer)
            result(exchange, HELLO)
          },
        }),
    })
    expect((await call('/a', { body: {} })).status).toBe(200)
    expect(answers).toMatchObject([{ kind: 'error', error: { code: -32601 } }])
  })

  test.each<PlainObject>([
    { resultType: 'input_required', inputRequests: {} },
    { inputRequests: { a: {} }, requestState: 's' },
  ])('with a question as its result is 501: %j', async asked => {
    await start({ 'tools/call': exchange => result(exchange, asked) })
    const reply = await call('/a', { body: {} })
    expect([reply.status, reply.json.error?.message]).toEqual([501, expect.stringContaining('cannot be asked')])
  })

  test('because the gateway shuts down is 503', async () => {
    await start({ 'tools/call': () => void front.context.activeCalls.drain(1) })
    expect((await call('/a', { body: {} })).status).toBe(503)
  })
})

test('a client that disconnects cancels its call', async () => {
  let arrived = (_: Exchange): void => {}
  const seen = new Promise<Exchange>(resolve => {
    arrived = resolve
  })
  await start({ 'tools/call': arrived })
  const leaving = request(`${url}/a`, { method: 'POST' }).on('error', () => {})
  leaving.end('{}')
  const { signal } = await seen
  leaving.destroy()
  expect(await new Promise(resolve => signal.onAbort(resolve))).toEqual({ kind: 'gone' })
  expect(front.context.activeCalls.size).toBe(0)
})

describe('progress', () => {
  const SSE = { headers: { accept: 'text/event-stream' }, body: {} }
  const progress = (exchange: Exchange, value: number): void | Promise<void> =>
    exchange.sink({
      kind: 'notice',
      method: 'notifications/progress',
      params: Json.of({
        progressToken: exchange.params.at('_meta', 'progressToken') ?? null,
        progress: value,
        total: 2,
      }),
    })

  test('is sent as events before the result if the client accepts events', async () => {
    await start({
      'tools/call': exchange => {
        void progress(exchange, 1)
        void exchange.sink({ kind: 'notice', method: 'notifications/message', params: Json.empty })
        void progress(exchange, 2)
        result(exchange, HELLO)
      },
    })
    const stream = await openStream(`${url}/a`, SSE)
    expect([stream.status, stream.headers['content-type']]).toEqual([200, 'text/event-stream'])
    expect((await stream.all()).map(({ event, json }) => [event, json])).toEqual([
      ['progress', { progress: 1, total: 2 }],
      ['progress', { progress: 2, total: 2 }],
      ['result', HELLO],
    ])
    expect(front.context.activeCalls.size).toBe(0)
  })

  test.each(['*/*', 'application/json', '', 'text/event-stream;q=0, */*'])('is not sent to %j', async accept => {
    await start({
      'tools/call': exchange => {
        void progress(exchange, 1)
        result(exchange, HELLO)
      },
    })
    const reply = await call('/a', { headers: { accept }, body: {} })
    expect([reply.status, JSON.parse(reply.text)]).toEqual([200, HELLO])
    expect(front.seen[0]?.params.has('_meta')).toBe(false)
  })

  test('a failure before the first event is a status, after it an event', async () => {
    await start({
      'tools/call': exchange => {
        if (exchange.params.get('name')?.asString() === 'late') void progress(exchange, 1)
        failing(-32603, 'Lost', { reason: 'upstream_lost' })?.(exchange)
      },
    })
    const early = await call('/early', SSE)
    expect([early.status, early.json.error?.message]).toEqual([502, 'Lost'])
    const late = await (await openStream(`${url}/late`, SSE)).all()
    expect(late.map(({ event, json }) => [event, json])).toEqual([
      ['progress', { progress: 1, total: 2 }],
      ['error', { status: 502, error: { code: -32603, message: 'Lost', data: { reason: 'upstream_lost' } } }],
    ])
  })

  test('a silent call becomes a stream that is kept alive', async () => {
    let finish = (): void => {}
    await start(
      {
        'tools/call': exchange => {
          finish = () => result(exchange, HELLO)
        },
      },
      { limits: { keepAliveMs: 50 } },
    )
    const stream = await openStream(`${url}/a`, SSE)
    await new Promise<void>(resolve => stream.response.on('data', chunk => String(chunk) === ':\n\n' && resolve()))
    finish()
    expect((await stream.all()).map(({ event }) => event)).toEqual(['result'])
  })

  test('a client that does not read slows the server down, and the gateway buffers nothing', async () => {
    let waiting: void | Promise<void>
    let sent = 0
    await start({
      'tools/call': async exchange => {
        for (let i = 0; i < 100_000 && !waiting; i++, sent++) {
          const params = Json.of({ progress: i, message: 'x'.repeat(10_000) })
          waiting = exchange.sink({ kind: 'notice', method: 'notifications/progress', params })
        }
        await waiting
        result(exchange, HELLO)
      },
    })
    const stream = await openStream(`${url}/a`, SSE)
    expect((await stream.all()).at(-1)?.event).toBe('result')
    expect(sent).toBeLessThan(10_000)
    expect(front.context.retention.bytes).toBe(0)
  })
})
