import { describe, expect, test } from 'vitest'
import { loadConfig } from './load.ts'

const load = (telemetry: unknown, env: Record<string, string> = {}) =>
  loadConfig({
    value: { mcpServers: { demo: { builtin: 'demo' } }, ...(telemetry !== undefined && { telemetry }) },
    env,
  })

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' }
const DEFAULT_BATCH = { delayMs: 5000, maxQueued: 2048, maxBatch: 512 }

test('it is off unless the file or the environment names an endpoint', async () => {
  expect((await load(undefined)).telemetry).toBeUndefined()
  expect((await load(undefined, { OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'nonsense' })).warnings).toEqual([])
  expect((await load(false, ENDPOINT)).telemetry).toBeUndefined()
  expect((await load(undefined, { ...ENDPOINT, OTEL_SDK_DISABLED: 'true' })).telemetry).toBeUndefined()
})

test('an endpoint is the base of both signals', async () => {
  const { telemetry } = await load({ endpoint: 'https://otel.example.com/base' })
  const signal = { headers: {}, timeoutMs: 10_000, isCompressed: false }
  expect(telemetry).toEqual({
    traces: { ...signal, url: 'https://otel.example.com/base/v1/traces' },
    metrics: { ...signal, url: 'https://otel.example.com/base/v1/metrics' },
    serviceName: 'dragoman',
    attributes: {},
    sampler: 'parentbased_always_on',
    ratio: 1,
    metricsMs: 60_000,
    batch: DEFAULT_BATCH,
  })
})

describe('the standard variables', () => {
  test('are enough', async () => {
    const { telemetry, warnings } = await load(undefined, {
      ...ENDPOINT,
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://metrics:9/write',
      OTEL_EXPORTER_OTLP_HEADERS: 'api-key=a%20b, x=1',
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x=2',
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_SERVICE_NAME: 'edge',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,team=a',
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.01',
      OTEL_METRIC_EXPORT_INTERVAL: '15000',
      OTEL_BSP_MAX_QUEUE_SIZE: '100',
    })
    expect(warnings).toEqual([])
    expect(telemetry).toEqual({
      traces: {
        url: 'http://collector:4318/v1/traces',
        headers: { 'api-key': 'a b', x: '2' },
        timeoutMs: 500,
        isCompressed: true,
      },
      metrics: {
        url: 'http://metrics:9/write',
        headers: { 'api-key': 'a b', x: '1' },
        timeoutMs: 500,
        isCompressed: true,
      },
      serviceName: 'edge',
      attributes: { team: 'a' },
      sampler: 'parentbased_traceidratio',
      ratio: 0.01,
      metricsMs: 15_000,
      batch: { ...DEFAULT_BATCH, maxQueued: 100 },
    })
  })

  test('are overridden by the file', async () => {
    const { telemetry } = await load(
      { endpoint: 'http://file:1', sampling: 0.5, serviceName: 'file', headers: { x: '${KEY}' }, metrics: false },
      { ...ENDPOINT, OTEL_SERVICE_NAME: 'env', OTEL_TRACES_SAMPLER: 'always_off', KEY: 'k' },
    )
    expect(telemetry).toMatchObject({
      traces: { url: 'http://file:1/v1/traces', headers: { x: 'k' } },
      metrics: undefined,
      serviceName: 'file',
      sampler: 'parentbased_traceidratio',
      ratio: 0.5,
    })
  })

  test('turn single signals off', async () => {
    const { telemetry } = await load(undefined, { ...ENDPOINT, OTEL_METRICS_EXPORTER: 'none' })
    expect(telemetry?.metrics).toBeUndefined()
    expect(telemetry?.traces).toBeDefined()
    const off = { OTEL_METRICS_EXPORTER: 'none', OTEL_TRACES_EXPORTER: 'none' }
    expect((await load({}, { ...ENDPOINT, ...off })).telemetry).toBeUndefined()
  })

  test.each([
    ['OTEL_TRACES_SAMPLER', 'some', 'OTEL_TRACES_SAMPLER: expected one of always_on'],
    ['OTEL_TRACES_SAMPLER_ARG', '2', 'OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1; ignored'],
    [
      'OTEL_EXPORTER_OTLP_HEADERS',
      's3cret',
      'OTEL_EXPORTER_OTLP_HEADERS: expected key=value,key=value; a part is ignored',
    ],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'collector:4317', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: expected a URL'],
    ['OTEL_TRACES_EXPORTER', 'zipkin', 'OTEL_TRACES_EXPORTER: only "otlp" and "none" are supported'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not supported'],
  ])('that are wrong are warned of and ignored: %s=%s', async (name, value, warning) => {
    const { warnings, telemetry } = await load(undefined, { ...ENDPOINT, [name]: value })
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toContain(warning)
    expect(warnings[0]).not.toContain('s3cret')
    expect(telemetry?.metrics).toBeDefined()
  })
})

test.each([
  [{}, 'telemetry: needs an "endpoint", like "http://127.0.0.1:4318"'],
  [{ endpoint: 'collector:4317' }, 'telemetry.endpoint: expected the URL of an OTLP/HTTP receiver'],
  [{ endpoint: 'http://x', sampling: 2 }, 'telemetry.sampling: expected a number from 0 to 1'],
  [{ endpoint: 'http://x', sample: 1 }, 'telemetry.sample: unknown key'],
  [{ endpoint: 'http://x', headers: { a: 1 } }, 'telemetry.headers.a: expected a string'],
  [true, 'telemetry: expected an object'],
])('%j is rejected with what is wrong', async (telemetry, message) => {
  await expect(load(telemetry)).rejects.toThrow(message)
})
