import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startGateway } from '../../src/app/gateway.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createTestLog } from '../support/log.ts'
import { startOtlpReceiver } from '../support/otlp-receiver.ts'
import { modern, send } from '../support/raw.ts'
import { install } from './install.ts'
import { collectorProgram } from './recipes.ts'
import { type ServerProcess, startServerProcess } from './server-process.ts'

const INSTALL_MS = 1_200_000
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT = '00f067aa0ba902b7'
const ENV = { OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_METRIC_EXPORT_INTERVAL: '200' }

/** Takes OTLP over HTTP, and passes on at once what it has understood, as JSON. */
const configure = (port: number, target: string): object => ({
  receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
  exporters: {
    otlphttp: { endpoint: target, encoding: 'json', compression: 'none', sending_queue: { enabled: false } },
  },
  service: {
    telemetry: { metrics: { level: 'none' }, logs: { level: 'error' } },
    pipelines: {
      traces: { receivers: ['otlp'], exporters: ['otlphttp'] },
      metrics: { receivers: ['otlp'], exporters: ['otlphttp'] },
    },
  },
})

type Receiver = Awaited<ReturnType<typeof startOtlpReceiver>>
type Value = Readonly<Record<string, unknown>>

const attributesOf = ({ attributes }: { attributes?: readonly { key: string; value: Value }[] }) =>
  Object.fromEntries((attributes ?? []).map(({ key, value }) => [key, Object.values(value)[0]]))

/** Everything of one kind in what the collector has passed on. */
const itemsIn = ({ texts }: Receiver, kind: 'Spans' | 'Metrics'): readonly Value[] =>
  texts
    .flatMap(text => JSON.parse(text)[`resource${kind}`] ?? [])
    .flatMap(resource => resource[`scope${kind}`])
    .flatMap(scope => scope[kind.toLowerCase()])

describe('the OpenTelemetry collector', () => {
  let skipped: string | undefined
  let receiver: Receiver
  let collector: ServerProcess
  let endpoint = ''

  beforeAll(async () => {
    const program = collectorProgram()
    const installed = await install(program.recipe)
    if (installed.kind === 'skipped') {
      skipped = installed.reason
      return
    }
    receiver = await startOtlpReceiver()
    collector = await startServerProcess(port => {
      endpoint = `http://127.0.0.1:${port}`
      return program.start(installed.folder, ['--config', `yaml:${JSON.stringify(configure(port, receiver.url))}`])
    })
  }, INSTALL_MS)
  afterAll(async () => {
    await collector?.stop()
    await receiver?.close()
  })

  it('refuses what is not OTLP', async ({ skip }) => {
    if (skipped) return skip(skipped)
    const wrong = { resourceSpans: [{ scopeSpans: [{ spans: [{ traceId: 'no hex digits' }] }] }] }
    const response = await fetch(`${endpoint}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(wrong),
    })
    expect(response.status).toBe(400)
  })

  it.for(['none', 'gzip'])('understands traces and metrics (compression: %s)', async (compression, { skip }) => {
    if (skipped) return skip(skipped)
    const value = {
      mcpServers: { demo: { builtin: 'demo' } },
      telemetry: { endpoint, compression, serviceName: `gateway-${compression}` },
      limits: { shutdownMs: 200 },
    }
    const { log, lines } = createTestLog()
    const snapshot = await loadConfig({ value, env: ENV, flags: { port: 0 } })
    const gateway = await startGateway(snapshot, { log, version: '1.2.3' })
    try {
      await gateway.ready
      receiver.texts.length = 0
      const meta = { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'vendor=1' }
      await send(gateway.url(), modern(7, 'tools/call', { name: 'example-ping', arguments: {} }, { meta }))
      await send(gateway.url(), modern(8, 'tools/call', { name: 'unknown', arguments: {} }, { meta }))
      const spans = () => itemsIn(receiver, 'Spans').filter(({ traceId }) => traceId === TRACE)
      const metric = (name: string) => itemsIn(receiver, 'Metrics').findLast(each => each.name === name)
      const isComplete = (): boolean =>
        spans().some(({ name }) => name === 'tools/call example-ping') &&
        spans().some(({ status }) => (status as Value)?.code === 2) &&
        metric('mcp.server.operation.duration') !== undefined
      await receiver.until(isComplete)

      const own = spans().find(({ kind, name }) => kind === 2 && name === 'tools/call example-ping') ?? {}
      expect(own).toMatchObject({ parentSpanId: PARENT, traceState: 'vendor=1', flags: 0x301 })
      expect(own.spanId).toMatch(/^[0-9a-f]{16}$/)
      expect(BigInt(String(own.endTimeUnixNano)) >= BigInt(String(own.startTimeUnixNano))).toBe(true)
      expect(attributesOf(own)).toMatchObject({
        'mcp.method.name': 'tools/call',
        'gen_ai.tool.name': 'example-ping',
        'jsonrpc.request.id': '7',
        'dragoman.outcome': 'ok',
      })
      const resources = receiver.texts.flatMap(text => JSON.parse(text).resourceSpans ?? [])
      expect(attributesOf(resources[0].resource)).toMatchObject({ 'service.name': `gateway-${compression}` })
      const histogram = metric('mcp.server.operation.duration')?.histogram as { dataPoints: readonly Value[] }
      expect(histogram).toMatchObject({ aggregationTemporality: 2 })
      expect(histogram.dataPoints.every(({ count }) => BigInt(String(count)) > 0n)).toBe(true)
      expect(metric('dragoman.requests')?.sum).toMatchObject({ aggregationTemporality: 2, isMonotonic: true })
      expect(lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([])
    } finally {
      await gateway.close()
    }
  })
})
