import { PassThrough } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import type { Script } from '../../../test/support/front.ts'
import { modern } from '../../../test/support/raw.ts'
import { DEFAULT_LIMITS, type Limits } from '../../config/snapshot.ts'
import { type AbortReason, NEVER } from '../../protocol/cancellation.ts'
import type { Answer, Exchange } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { ActiveCalls } from '../http/active-calls.ts'
import { KeepAlive } from '../streams/keep-alive.ts'
import { StreamRetention } from '../streams/stream-retention.ts'
import { serveStdio } from './stdio.ts'

interface Line {
  id?: unknown
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { code: number; message: string }
}

const tickers: KeepAlive[] = []
afterEach(() => {
  for (const ticker of tickers.splice(0)) ticker.stop()
})

const DISCOVER = (exchange: Exchange) =>
  exchange.sink({
    kind: 'result',
    result: Json.of({ capabilities: { tools: {} }, _meta: { [META.serverInfo]: { name: 'far', version: '2' } } }),
  })

/** A pipe in front of a scripted far side. */
const start = (script: Script = {}, limits: Partial<Limits> = {}) => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const seen: Exchange[] = []
  const lines: Line[] = []
  const waiting: ((line: Line) => void)[] = []
  let text = ''
  output.on('data', chunk => {
    text += chunk
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const line = JSON.parse(text.slice(0, end)) as Line
      text = text.slice(end + 1)
      const next = waiting.shift()
      if (next) next(line)
      else lines.push(line)
    }
  })
  const ticker = new KeepAlive(15_000)
  tickers.push(ticker)
  const context = {
    dispatch: (exchange: Exchange) => {
      seen.push(exchange)
      const act = script[exchange.method] ?? (exchange.method === 'server/discover' ? DISCOVER : undefined)
      if (act) act(exchange)
      else if (exchange.kind === 'request' && exchange.method !== 'subscriptions/listen')
        void exchange.sink({ kind: 'failure', error: { code: -32601, message: 'Method not found' } })
    },
    limits: { ...DEFAULT_LIMITS, ...limits },
    log: SILENT,
    keepAlive: ticker,
    retention: new StreamRetention({ total: 1e6, perOwner: 1e6 }),
    activeCalls: new ActiveCalls(DEFAULT_LIMITS.principalSessions),
  }
  const closed = serveStdio(context, { input, output, workspace: 'w', principal: 'local' })
  return {
    seen,
    context,
    output,
    closed,
    end: () => input.end(),
    write: (message: object | string) =>
      void input.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`),
    next: (): Promise<Line> => {
      const known = lines.shift()
      return known ? Promise.resolve(known) : new Promise(resolve => waiting.push(resolve))
    },
  }
}

const answer = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.of({ content: [] }) })
const request = (id: unknown, method = 'tools/call', params: object = { name: 'echo' }) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})
const initialize = request(0, 'initialize', {
  protocolVersion: '2025-06-18',
  capabilities: { roots: {} },
  clientInfo: { name: 'c', version: '1' },
})

test('a legacy client initializes, calls, and gets notifications outside a call', async () => {
  const pipe = start({ 'tools/call': answer })
  pipe.write(initialize)
  expect(await pipe.next()).toMatchObject({
    id: 0,
    result: { protocolVersion: '2025-06-18', serverInfo: { name: 'far' } },
  })
  pipe.write({ jsonrpc: '2.0', method: 'notifications/initialized' })
  pipe.write(request('a'))
  expect(await pipe.next()).toEqual({ jsonrpc: '2.0', id: 'a', result: { content: [] } })
  const standing = pipe.seen.find(({ method }) => method === 'subscriptions/listen')
  expect(standing?.caller).toMatchObject({ revision: '2025-06-18', principal: 'local', workspace: 'w' })
  void standing?.sink({ kind: 'notice', method: 'notifications/tools/list_changed', params: Json.empty })
  expect((await pipe.next()).method).toBe('notifications/tools/list_changed')
})

test('what a client sends before the response to initialize is served after it, as that client', async () => {
  let discover: (() => unknown) | undefined
  const pipe = start({
    'server/discover': exchange => {
      discover = () => DISCOVER(exchange)
    },
    'tools/call': answer,
  })
  pipe.write(initialize)
  pipe.write({ jsonrpc: '2.0', method: 'notifications/initialized' })
  pipe.write(request(1))
  pipe.write(request(2))
  pipe.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 2 } })
  await new Promise(resolve => setImmediate(resolve))
  expect(pipe.seen.map(({ method }) => method)).toEqual(['server/discover'])
  discover?.()
  expect([(await pipe.next()).id, (await pipe.next()).id]).toEqual([0, 1])
  const [, listening, call] = pipe.seen
  expect([listening?.method, call?.method]).toEqual(['subscriptions/listen', 'tools/call'])
  for (const exchange of [listening, call])
    expect(exchange?.caller).toMatchObject({ revision: '2025-06-18', info: Json.of({ name: 'c', version: '1' }) })
  expect(listening?.signal.reason).toBeUndefined()
})

test('a client cannot send without end before the response to initialize', async () => {
  const pipe = start({ 'server/discover': () => {} })
  pipe.write(initialize)
  for (let id = 1; id <= 1001; id++) pipe.write(request(id))
  expect(await pipe.next()).toMatchObject({
    id: 1001,
    error: { code: -32600, message: expect.stringContaining('1000') },
  })
})

test('both eras share the pipe, each with its own rules', async () => {
  const pipe = start({ 'tools/call': answer })
  pipe.write(initialize)
  await pipe.next()
  pipe.write(modern('m', 'tools/call', { name: 'echo' }).body)
  expect(await pipe.next()).toMatchObject({ id: 'm' })
  pipe.write(request(1))
  expect(await pipe.next()).toMatchObject({ id: 1 })
  expect(
    pipe.seen
      .filter(({ method }) => method === 'tools/call')
      .map(({ caller }) => [caller.revision, caller.session !== undefined]),
  ).toEqual([
    ['2026-07-28', false],
    ['2025-06-18', true],
  ])
})

test('messages of a modern subscription carry its id; cancelled ends it without a response', async () => {
  let ended: AbortReason | undefined
  const pipe = start({
    'subscriptions/listen': exchange => {
      exchange.signal.onAbort(reason => {
        ended = reason
      })
      void exchange.sink({
        kind: 'notice',
        method: 'notifications/subscriptions/acknowledged',
        params: Json.of({ notifications: {} }),
      })
    },
    'tools/call': answer,
  })
  pipe.write(modern('sub', 'subscriptions/listen', { notifications: {} }).body)
  expect((await pipe.next()).params?._meta).toEqual({ [META.subscriptionId]: 'sub' })
  pipe.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'sub' } })
  pipe.write(modern(2, 'tools/call', { name: 'x' }).body)
  expect((await pipe.next()).id).toBe(2)
  expect(ended).toEqual({ kind: 'cancelled' })
})

test('a question is one line, and so is its answer', async () => {
  const answers: Answer[] = []
  const pipe = start({
    'tools/call': exchange =>
      exchange.sink({
        kind: 'question',
        method: 'roots/list',
        params: Json.empty,
        withdrawn: NEVER,
        answer: reply => {
          answers.push(reply)
          void answer(exchange)
        },
      }),
  })
  pipe.write(initialize)
  await pipe.next()
  pipe.write(request(1))
  expect(await pipe.next()).toMatchObject({ id: 'gw-1', method: 'roots/list' })
  pipe.write({ jsonrpc: '2.0', id: 'gw-1', result: { roots: [] } })
  expect(await pipe.next()).toMatchObject({ id: 1, result: { content: [] } })
  expect(answers).toMatchObject([{ kind: 'result' }])
})

test.each([
  ['no JSON', '{"a":', -32700, null],
  ['no message', '{"a":1}', -32600, null],
  [
    'an unknown version',
    JSON.stringify({
      ...modern(4, 'tools/list').body,
      params: { _meta: { [META.protocolVersion]: '1900-01-01', [META.clientCapabilities]: {} } },
    }),
    -32022,
    4,
  ],
  [
    'an envelope without capabilities',
    JSON.stringify({ ...modern(5, 'tools/list').body, params: { _meta: { [META.protocolVersion]: '2026-07-28' } } }),
    -32602,
    5,
  ],
  ['a method of the other era', JSON.stringify(modern(6, 'ping').body), -32601, 6],
  ['a bad handshake', JSON.stringify(request(7, 'initialize', {})), -32602, 7],
])('%s is rejected with one line, and the next line is served', async (_name, line, code, id) => {
  const pipe = start({ 'tools/call': answer })
  pipe.write(line)
  const refused = await pipe.next()
  expect([refused.error?.code, refused.id]).toEqual([code, id])
  pipe.write(modern(9, 'tools/call', { name: 'x' }).body)
  expect((await pipe.next()).id).toBe(9)
})

test('an id in use is rejected in both eras', async () => {
  const pipe = start({ 'tools/call': () => {} })
  pipe.write(modern(1, 'tools/call', { name: 'x' }).body)
  pipe.write(modern(1, 'tools/call', { name: 'x' }).body)
  expect((await pipe.next()).error?.code).toBe(-32600)
  pipe.write(request(1))
  expect((await pipe.next()).error?.code).toBe(-32600)
})

test('the end of input cancels everything and resolves', async () => {
  const pipe = start({ 'tools/call': () => {} })
  pipe.write(modern(1, 'tools/call', { name: 'x' }).body)
  pipe.write(initialize)
  await pipe.next()
  pipe.write(request(2))
  await expect.poll(() => pipe.context.activeCalls.size).toBe(2)
  pipe.end()
  await pipe.closed
  expect(pipe.seen.filter(({ method }) => method === 'tools/call').map(({ signal }) => signal.reason?.kind)).toEqual([
    'gone',
    'gone',
  ])
})

test('the responses to a batch are sent line by line', async () => {
  const pipe = start({ 'tools/call': answer })
  pipe.write(initialize)
  await pipe.next()
  pipe.write([request(1), request(2)])
  expect([(await pipe.next()).id, (await pipe.next()).id]).toEqual([1, 2])
})

test('large capabilities and a large initialize are rejected by the same limits as over HTTP', async () => {
  const pipe = start()
  const capabilities = { experimental: { pad: 'x'.repeat(64 * 1024) } }
  pipe.write(request(1, 'initialize', { protocolVersion: '2025-06-18', capabilities }))
  expect(await pipe.next()).toMatchObject({ id: 1, error: { code: -32602 } })
  pipe.write(modern(2, 'tools/list', {}, { capabilities }).body)
  expect(await pipe.next()).toMatchObject({ id: 2, error: { code: -32602 } })
  pipe.write({ ...initialize, pad: 'x'.repeat(256 * 1024) })
  expect(await pipe.next()).toMatchObject({ id: 0, error: { code: -32600 } })
  expect(pipe.seen).toEqual([])
})

test('a line beyond the limit is rejected', async () => {
  const pipe = start({}, { bodyBytes: 1000 })
  pipe.write('x'.repeat(5000))
  expect((await pipe.next()).error?.code).toBe(-32600)
})

test.each([
  [
    'a modern',
    (id: string, token: string) => modern(id, 'tools/call', { name: 'echo' }, { meta: { progressToken: token } }).body,
  ],
  [
    'a legacy',
    (id: string, token: string) => request(id, 'tools/call', { name: 'echo', _meta: { progressToken: token } }),
  ],
] as const)(
  '%s client that reads late still reads its progress in order and before the answer',
  async (_era, callOf) => {
    const pipe = start({ 'tools/call': () => {} })
    pipe.write(initialize)
    await pipe.next()
    pipe.write(callOf('a', 'ta'))
    pipe.write(callOf('b', 'tb'))
    const calls = () => pipe.seen.filter(({ method }) => method === 'tools/call')
    const report = ({ params, sink }: Exchange, progress: number): void => {
      const progressToken = params.at('_meta', 'progressToken')?.asString() ?? ''
      const message = 'x'.repeat(1000) // more in all than the pipe holds
      void sink({
        kind: 'notice',
        method: 'notifications/progress',
        params: Json.of({ progressToken, progress, message }),
      })
    }
    await expect.poll(() => calls().length).toBe(2)
    pipe.output.pause()
    for (let progress = 1; progress <= 100; progress++) for (const call of calls()) report(call, progress)
    for (const call of calls()) {
      void answer(call)
      report(call, 101)
    }
    pipe.output.resume()
    const read: Line[] = []
    while (read.filter(({ result }) => result).length < 2) read.push(await pipe.next())
    for (const [id, token] of [
      ['a', 'ta'],
      ['b', 'tb'],
    ]) {
      const mine = read.filter(line => line.id === id || line.params?.progressToken === token)
      const progress = mine.flatMap(({ params }) => (params ? [Number(params.progress)] : []))
      expect(progress).toEqual([...progress].sort((a, b) => a - b))
      expect([progress[0], progress.at(-1), mine.at(-1)?.id]).toEqual([1, 100, id])
    }
  },
)
