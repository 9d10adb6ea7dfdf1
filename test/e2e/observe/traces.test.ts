import { afterEach, describe, expect, test } from 'vitest'
import { startGateway } from '../../../src/app/gateway.ts'
import { loadConfig } from '../../../src/config/load.ts'
import { connectV2 } from '../../support/client-v2.ts'
import { createTestLog } from '../../support/log.ts'
import { type ReceivedSpan, startOtlpReceiver } from '../../support/otlp-receiver.ts'
import { modern, openSession, send } from '../../support/raw.ts'
import { type Arrived, scriptedServer } from '../../support/scripted-server.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = `00-${TRACE}-00f067aa0ba902b7-01`
const UNSAMPLED = `00-${TRACE}-00f067aa0ba902b7-00`
const [SERVER, CLIENT] = [2, 3]
const FAST = { OTEL_BSP_SCHEDULE_DELAY: '10' }

const start = async (mcpServers: object, telemetry: object = {}, env: Record<string, string> = {}) => {
  const collector = await startOtlpReceiver()
  closing.push(collector.close)
  const testLog = createTestLog()
  const value = {
    mcpServers,
    telemetry: { endpoint: collector.url, metrics: false, ...telemetry },
    limits: { shutdownMs: 200 },
  }
  const snapshot = await loadConfig({ value, env: { ...FAST, ...env }, flags: { port: 0 } })
  const gateway = await startGateway(snapshot, { log: testLog.log, version: '1.2.3' })
  closing.push(gateway.close)
  await gateway.ready
  /** The spans of calls, once there are so many; then nothing else may be wrong with what was sent. */
  const spans = async (count: number): Promise<ReceivedSpan[]> => {
    const calls = () => collector.spans.filter(({ name }) => !/discover|list|initialize/.test(name))
    await collector.until(() => calls().length >= count || collector.problems.length > 0)
    expect(collector.problems).toEqual([])
    return calls()
  }
  return { ...testLog, gateway, collector, url: gateway.url(), spans }
}

const answerWith = (arrived: Arrived, result: object): void => {
  const { response, body } = arrived
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ jsonrpc: '2.0', id: body.id, result }))
}

/** A server of either era that answers every call, on a real socket. */
const recordingServer = async (era: 'modern' | 'legacy') => {
  const serverInfo = { name: 'recorder', version: '1' }
  const server = await scriptedServer((arrived, response) => {
    const { method } = arrived.body
    if (arrived.method !== 'POST') return void response.writeHead(405).end()
    if (method === 'server/discover' && era === 'legacy') return void response.writeHead(400).end()
    if (method === 'server/discover')
      return answerWith(arrived, {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities: { tools: {} },
        serverInfo,
        ttlMs: 0,
        cacheScope: 'private',
      })
    if (method === 'initialize')
      return answerWith(arrived, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo })
    if (method?.startsWith('notifications/')) return void response.writeHead(202).end()
    answerWith(arrived, { resultType: 'complete', content: [], tools: [] })
  })
  closing.push(server.close)
  return server
}

const call = (meta: object = {}) => modern(7, 'tools/call', { name: 'work', arguments: { a: 's3cret' } }, { meta })

const metaOf = ({ body }: Arrived) => body.params?._meta as Record<string, unknown>

const contextOf = (text: unknown): { traceId: string; spanId: string; flags: string } => {
  const [, traceId = '', spanId = '', flags = ''] = String(text).split('-')
  return { traceId, spanId, flags }
}

describe.each(['modern', 'legacy'] as const)('a call to a %s server over HTTP', era => {
  test('joins the trace of the client, which goes on at the server', async () => {
    const server = await recordingServer(era)
    const { url, spans } = await start({ work: { url: server.url } })
    await send(url, call({ traceparent: PARENT, tracestate: 'vendor=1', baggage: 'user=ada' }))
    const arrived = await server.arrived('tools/call')
    const found = await spans(2)
    const [own, sent] = [found.find(({ kind }) => kind === SERVER), found.find(({ kind }) => kind === CLIENT)]
    expect(own).toMatchObject({
      traceId: TRACE,
      parentSpanId: '00f067aa0ba902b7',
      name: 'tools/call work',
      isError: false,
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.tool.name': 'work',
        'gen_ai.operation.name': 'execute_tool',
        'mcp.protocol.version': '2026-07-28',
        'jsonrpc.request.id': '7',
        'network.transport': 'tcp',
        'client.address': '127.0.0.1',
        'enduser.id': 'local',
        'dragoman.workspace': 'default',
        'dragoman.server': 'work',
        'dragoman.outcome': 'ok',
      },
    })
    expect(sent).toMatchObject({
      traceId: TRACE,
      parentSpanId: own?.spanId,
      name: 'tools/call work',
      attributes: {
        'dragoman.server': 'work',
        'server.address': '127.0.0.1',
        'server.port': Number(new URL(server.url).port),
      },
    })
    expect(contextOf(metaOf(arrived).traceparent)).toEqual({ traceId: TRACE, spanId: sent?.spanId, flags: '01' })
    expect(arrived.headers.traceparent).toBe(metaOf(arrived).traceparent)
    expect(metaOf(arrived)).toMatchObject({ tracestate: 'vendor=1', baggage: 'user=ada' })
    expect(JSON.stringify(found)).not.toContain('s3cret')
  })

  test('takes the context of the headers, of a session too', async () => {
    const server = await recordingServer(era)
    const { url, spans } = await start({ work: { url: server.url } })
    const { headers } = await openSession(url)
    await send(url, {
      headers: { ...headers, traceparent: PARENT, tracestate: 'vendor=1' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'work' } },
    })
    const arrived = await server.arrived('tools/call')
    const [own] = (await spans(2)).filter(({ kind }) => kind === SERVER)
    expect(own).toMatchObject({ traceId: TRACE, parentSpanId: '00f067aa0ba902b7' })
    expect(own?.attributes['mcp.session.id']).toMatch(/^[\w-]{16}$/)
    expect(contextOf(metaOf(arrived).traceparent).traceId).toBe(TRACE)
    expect(metaOf(arrived).tracestate).toBe('vendor=1')
  })

  test('without telemetry carries the context of the headers in the message, unchanged', async () => {
    const server = await recordingServer(era)
    const { url } = await start({ work: { url: server.url } }, { traces: false })
    const { headers, body } = call()
    await send(url, { headers: { ...headers, traceparent: PARENT, baggage: 'user=ada' }, body })
    const arrived = await server.arrived('tools/call')
    expect(metaOf(arrived)).toMatchObject({ traceparent: PARENT, baggage: 'user=ada' })
    expect(arrived.headers.traceparent).toBe(PARENT)
  })
})

test('a server over stdio gets the context in _meta', async () => {
  const script = `
    require('node:readline').createInterface({ input: process.stdin }).on('line', line => {
      const { id, method, params } = JSON.parse(line)
      if (id === undefined) return
      const answer = result => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
      if (method === 'initialize') answer({ protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } })
      else if (method === 'tools/call') answer({ content: [{ type: 'text', text: JSON.stringify(params._meta) }] })
      else if (method === 'tools/list') answer({ tools: [{ name: 'work', inputSchema: { type: 'object' } }] })
      else console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'no' } }))
    })`
  const { url, spans } = await start({ work: { command: process.execPath, args: ['-e', script], era: 'legacy' } })
  const { headers, body } = call()
  const { json } = await send(url, { headers: { ...headers, traceparent: PARENT }, body })
  const [{ text = '' } = {}] = (json.result?.content ?? []) as { text?: string }[]
  const sent = (await spans(2)).find(({ kind }) => kind === CLIENT)
  expect(contextOf(JSON.parse(text).traceparent)).toEqual({ traceId: TRACE, spanId: sent?.spanId, flags: '01' })
  expect(sent?.attributes['network.transport']).toBe('pipe')
})

test('a context in the message wins over that of the headers, which is linked', async () => {
  const { url, spans } = await start({ demo: { builtin: 'demo' } })
  const other = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  const { headers, body } = modern(1, 'tools/call', { name: 'example-ping' }, { meta: { traceparent: PARENT } })
  await send(url, { headers: { ...headers, traceparent: other }, body })
  const own = (await spans(2)).find(({ kind }) => kind === SERVER)
  expect(own).toMatchObject({ traceId: TRACE, links: [{ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }] })
})

describe('sampling', () => {
  test('a client that does not record its trace decides for all', async () => {
    const server = await recordingServer('modern')
    const { url, gateway, collector } = await start({ work: { url: server.url } })
    await send(url, call({ traceparent: UNSAMPLED }))
    expect(metaOf(await server.arrived('tools/call')).traceparent).toBe(UNSAMPLED)
    await gateway.close()
    expect(collector.spans.filter(({ name }) => name.startsWith('tools/call'))).toEqual([])
  })

  test('a new trace that is not recorded tells the server so', async () => {
    const server = await recordingServer('modern')
    const { url, gateway, collector } = await start({ work: { url: server.url } }, { sampling: 0 })
    await send(url, call())
    const arrived = await server.arrived('tools/call')
    expect(arrived.headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
    await gateway.close()
    expect(collector.requests).toEqual([])
  })

  test.each(['nonsense', `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`, 'x'.repeat(10_000)])(
    'an invalid context begins a new trace: %s',
    async traceparent => {
      const { url, spans } = await start({ demo: { builtin: 'demo' } })
      await send(url, modern(1, 'tools/call', { name: 'example-ping' }, { meta: { traceparent } }))
      const own = (await spans(2)).find(({ kind }) => kind === SERVER)
      expect(own?.parentSpanId).toBeUndefined()
      expect(own?.traceId).toMatch(/^[0-9a-f]{32}$/)
    },
  )
})

test('failures of tools, of requests and of servers have the error of the conventions', async () => {
  const { url, spans } = await start({ demo: { builtin: 'demo' } })
  await send(url, modern(1, 'tools/call', { name: 'test_error_handling' }))
  await send(url, modern(2, 'tools/call', { name: 'none' }))
  const own = (await spans(4)).filter(({ kind }) => kind === SERVER)
  expect(own).toMatchObject([
    { isError: true, attributes: { 'error.type': 'tool_error' } },
    { isError: true, attributes: { 'error.type': '-32602', 'rpc.response.status_code': '-32602' } },
  ])
})

test.each([
  ['SDK v2 modern', 'a parked call'],
  ['SDK v2 legacy', 'a live call'],
] as const)('%s: the question of %s has a span', async (kind, _) => {
  const { url, spans } = await start({ demo: { builtin: 'demo' } })
  const client = await connectV2(kind, { url })
  await client.call('test_elicitation', { message: 'Who?' }, { meta: { traceparent: PARENT } })
  await client.close()
  const all = await spans(3)
  const question = all.find(({ name }) => name === 'elicitation/create')
  expect(question).toMatchObject({ traceId: TRACE, kind: CLIENT, attributes: { 'dragoman.action': 'accept' } })
  expect(all.some(({ spanId }) => spanId === question?.parentSpanId)).toBe(true)
})

test('the resource names the service, and headers and variables are those of the configuration', async () => {
  const { url, spans, collector } = await start(
    { demo: { builtin: 'demo' } },
    { headers: { 'x-key': 'k' }, compression: 'gzip', serviceName: 'gw', attributes: { team: 'a' } },
    { OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test%20bed,team=b' },
  )
  await send(url, modern(1, 'tools/call', { name: 'example-ping' }))
  await spans(2)
  expect(collector.requests[0]).toMatchObject({
    path: '/v1/traces',
    headers: { 'x-key': 'k', 'content-encoding': 'gzip' },
    resource: {
      'service.name': 'gw',
      'service.version': '1.2.3',
      'deployment.environment.name': 'test bed',
      team: 'a',
      'telemetry.sdk.language': 'nodejs',
    },
  })
})

describe('a collector', () => {
  test('that is not there stops no call, and is one line of the log', async () => {
    const { url, collector, lines, saw, gateway } = await start({ demo: { builtin: 'demo' } }, { metrics: true })
    await collector.close()
    for (let i = 0; i < 20; i++)
      expect((await send(url, modern(i, 'tools/call', { name: 'example-ping' }))).status).toBe(200)
    await saw(({ message }) => message.startsWith('telemetry not exported'))
    const { text } = await send(`${gateway.origin}/metrics`, { method: 'GET' })
    expect(text).toMatch(/^dragoman_telemetry_exports_total\{signal="traces",outcome="error"\} [1-9]/m)
    expect(lines.filter(({ message }) => message.startsWith('telemetry'))).toHaveLength(1)
  })

  test('that hangs delays neither calls nor the end', async () => {
    const { url, collector, gateway } = await start({ demo: { builtin: 'demo' } }, { timeoutMs: 200 })
    collector.become(() => {})
    await send(url, modern(1, 'tools/call', { name: 'example-ping' }))
    await collector.until(() => collector.requests.length > 0)
    expect((await send(url, modern(2, 'tools/call', { name: 'example-ping' }))).status).toBe(200)
    await gateway.close()
  })

  test('that is busy gets the same spans later', async () => {
    const { url, collector, spans, saw } = await start({ demo: { builtin: 'demo' } })
    collector.become(response => response.writeHead(503).end())
    await send(url, modern(1, 'tools/call', { name: 'example-ping' }))
    await collector.until(() => collector.requests.length > 0)
    collector.become()
    expect(await spans(2)).toHaveLength(2)
    await saw(({ message }) => message === 'telemetry exported again')
  })

  test('that refuses the data does not get it again', async () => {
    const { url, collector, gateway } = await start({ demo: { builtin: 'demo' } })
    collector.become(response => response.writeHead(400).end())
    await send(url, modern(1, 'tools/call', { name: 'example-ping' }))
    await collector.until(() => collector.requests.length > 0)
    collector.become()
    await gateway.close()
    expect(collector.spans.filter(({ name }) => name.startsWith('tools/call'))).toEqual([])
    expect(collector.requests).toHaveLength(1)
  })
})

test('metrics are sent as /metrics shows them, by the names of the conventions where there are any', async () => {
  const { url, collector, gateway } = await start(
    { demo: { builtin: 'demo' } },
    { traces: false, metrics: true, metricsMs: 100 },
  )
  await send(url, modern(1, 'tools/call', { name: 'example-ping' }))
  const find = (name: string) => collector.metrics.findLast(metric => metric.name === name)
  await collector.until(() => JSON.stringify(find('dragoman.tool_calls') ?? '').includes('example-ping'))
  await gateway.close()
  expect(collector.problems).toEqual([])
  const text = JSON.stringify(collector.metrics)
  expect(text).toContain('{"key":"gen_ai.tool.name","value":{"stringValue":"example-ping"}}')
  expect(find('mcp.server.operation.duration')).toMatchObject({
    unit: 's',
    histogram: {
      dataPoints: [
        {
          count: '1',
          attributes: expect.arrayContaining([{ key: 'mcp.method.name', value: { stringValue: 'tools/call' } }]),
        },
      ],
    },
  })
  expect(find('dragoman.sessions')).toHaveProperty('gauge')
  expect(find('process.memory.usage')).toMatchObject({ unit: 'By' })
})
