import { describe, expect, test } from 'vitest'
import { createMetrics } from './metrics.ts'
import { createFamilyReader, createMetricsReader } from './metrics-reader.ts'

interface Frame {
  readonly kind: string
  readonly server?: string
}

/** A request on its way, with both ends in the hands of the test. */
const exchangeOf = (method: string, kind = 'request') => {
  const listeners = new Set<(reason: { kind: string }) => void>()
  const frames: Frame[] = []
  return {
    kind,
    method,
    frames,
    listeners,
    signal: {
      onAbort: (listener: (reason: { kind: string }) => void) => {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    },
    sink: (frame: Frame): void => void frames.push(frame),
    abort: () => {
      for (const listener of [...listeners]) listener({ kind: 'gone' })
    },
  }
}

const start = () =>
  createMetrics<Frame>({
    isKnown: method => method.startsWith('tools/') || method === 'listen',
    isStanding: method => method === 'listen',
    serverFailureOf: ({ server }) => (server === undefined ? undefined : { server, reason: 'gone' }),
  })

type Sent = ReturnType<typeof exchangeOf>
const send = (metrics: ReturnType<typeof start>, exchange: Sent, ...frames: Frame[]) =>
  metrics.count<Pick<Sent, 'kind' | 'method' | 'signal' | 'sink'>>('rest', ({ sink }) => {
    for (const frame of frames) void sink(frame)
  })(exchange)

describe('counting', () => {
  test('sees how each request ended, and passes everything on', () => {
    const metrics = start()
    const exchange = exchangeOf('tools/call')
    send(metrics, exchange, { kind: 'notice' }, { kind: 'result' }, { kind: 'result' })
    send(metrics, exchangeOf('tools/call'), { kind: 'failure' })
    expect(metrics.rows).toMatchObject([{ dialect: 'rest', method: 'tools/call', ok: 1, error: 1, cancelled: 0 }])
    expect(exchange.frames.map(({ kind }) => kind)).toEqual(['notice', 'result', 'result'])
    expect(exchange.listeners.size).toBe(0)
  })

  test('unknown methods share one count', () => {
    const metrics = start()
    const counted = metrics.count<Sent>('rest', ({ sink }) => sink({ kind: 'result' }))
    for (let i = 0; i < 1000; i++) counted(exchangeOf(`made/up${i}`))
    counted(exchangeOf('tools/call'))
    expect(metrics.rows.map(({ method, ok }) => [method, ok])).toEqual([
      ['other', 1000],
      ['tools/call', 1],
    ])
  })

  test('a request that is cancelled counts as that, and as nothing else later', () => {
    const metrics = start()
    const exchange = exchangeOf('tools/call')
    let late = (_: Frame): void => {}
    metrics.count<Sent>('rest', ({ sink }) => {
      late = sink
    })(exchange)
    exchange.abort()
    late({ kind: 'result' })
    expect(metrics.rows).toMatchObject([{ ok: 0, cancelled: 1 }])
    expect(metrics.rows[0]?.buckets.every(count => count === 0)).toBe(true)
  })

  test('notifications have no outcome to count', () => {
    const metrics = start()
    send(metrics, exchangeOf('tools/call', 'notification'))
    expect(metrics.rows).toEqual([])
  })

  test('names the servers that failed, and not without end', () => {
    const metrics = start()
    for (let i = 0; i < 1000; i++) send(metrics, exchangeOf('tools/call'), { kind: 'failure', server: `s${i % 300}` })
    expect(metrics.failures().length).toBe(256)
    expect(metrics.failures()[0]).toEqual({ server: 's0', reason: 'gone', count: 4 })
  })
})

describe('a scrape', () => {
  const live = {
    version: '1.2.3',
    load: () => ({ sessions: 1, channels: 2, streams: 3, calls: 4, tasks: 6, logBytes: 5 }),
    states: ['ready', 'down'],
    servers: () => [
      { name: 'a"b\\c', state: 'ready', revision: 'r', figures: { openings: 2, retries: 3, waiting: 4 } },
      { name: 'off', state: 'down' },
    ],
    storeStates: ['ok', 'away'],
    store: () => ({
      engine: 'sqlite',
      state: 'ok',
      claims: 6,
      journalBytes: 7,
      queuedBytes: 8,
      forwards: 9,
      replicas: ['x', 'y'],
    }),
  }

  test('shows what was counted', async () => {
    const metrics = start()
    send(metrics, exchangeOf('tools/call'), { kind: 'result' })
    send(metrics, exchangeOf('listen'), { kind: 'result' })
    const { type, text } = await createMetricsReader(createFamilyReader(metrics, live))()
    expect(type).toContain('text/plain; version=0.0.4')
    const lines = text.split('\n')
    expect(lines).toEqual(
      expect.arrayContaining([
        '# TYPE dragoman_requests_total counter',
        'dragoman_requests_total{dialect="rest",method="tools/call",outcome="ok"} 1',
        'dragoman_requests_total{dialect="rest",method="listen",outcome="ok"} 1',
        '# TYPE dragoman_request_duration_seconds histogram',
        'dragoman_request_duration_seconds_bucket{dialect="rest",method="tools/call",le="+Inf"} 1',
        'dragoman_request_duration_seconds_count{dialect="rest",method="tools/call"} 1',
        'dragoman_info{version="1.2.3"} 1',
        'dragoman_server_up{server="a\\"b\\\\c"} 1',
        'dragoman_server_up{server="off"} 0',
        'dragoman_server_info{server="a\\"b\\\\c",revision="r"} 1',
        'dragoman_server_state{server="off",state="ready"} 0',
        'dragoman_server_state{server="off",state="down"} 1',
        '# TYPE dragoman_server_breaker_openings_total counter',
        'dragoman_server_breaker_openings_total{server="a\\"b\\\\c"} 2',
        'dragoman_server_retries_total{server="a\\"b\\\\c"} 3',
        '# TYPE dragoman_server_calls_waiting gauge',
        'dragoman_server_calls_waiting{server="a\\"b\\\\c"} 4',
        'dragoman_sessions 1',
        'dragoman_channels 2',
        'dragoman_streams 3',
        'dragoman_calls_in_flight 4',
        'dragoman_tasks_running 6',
        'dragoman_log_bytes 5',
        'dragoman_store_state{engine="sqlite",state="ok"} 1',
        'dragoman_store_state{engine="sqlite",state="away"} 0',
        'dragoman_store_claims 6',
        'dragoman_store_journal_bytes 7',
        'dragoman_store_queued_bytes 8',
        'dragoman_forwards_in_flight 9',
        'dragoman_replicas 2',
      ]),
    )
    expect(text).not.toContain('dragoman_server_calls_running{')
    expect(text).not.toContain('duration_seconds_count{dialect="rest",method="listen"')
    expect(text).toMatch(/^process_cpu_seconds_total \d/m)
    expect(text).toMatch(/^nodejs_heap_size_used_bytes \d/m)
  })

  test('has buckets that only grow, and a sum that fits', async () => {
    const metrics = start()
    for (let i = 0; i < 20; i++) send(metrics, exchangeOf('tools/call'), { kind: 'result' })
    const { text } = await createMetricsReader(createFamilyReader(metrics, live))()
    const counts = [...text.matchAll(/_bucket\{.*method="tools\/call",le="[^"]+"\} (\d+)/g)].map(([, count]) =>
      Number(count),
    )
    expect(counts.length).toBe(16)
    expect(counts).toEqual([...counts].sort((a, b) => a - b))
    expect(counts.at(-1)).toBe(20)
  })
})
