import type { Metric, MetricValueWithName, Registry } from 'prom-client'
import { BUCKETS, type Metrics, type RequestCounts } from './metrics.ts'
import type { CallCounts } from './server-calls.ts'

/** Values that are read when metrics are requested. */
export interface MetricsSource {
  readonly version: string
  readonly load: () => Readonly<Record<keyof typeof GAUGES, number>>
  readonly states: readonly string[] // all possible states of a server
  readonly servers: () => readonly ServerValues[]
  readonly calls?: () => readonly CallCounts[]
}

interface ServerValues {
  readonly name: string
  readonly state: string
  readonly revision?: string | undefined
  readonly figures?: Partial<Record<keyof typeof SERVER_COUNTERS, number | undefined>> | undefined
}

const GAUGES = {
  sessions: ['sessions', 'Legacy sessions over Streamable HTTP'],
  channels: ['channels', 'SSE channels'],
  streams: ['streams', 'Open event streams, without SSE channels'],
  calls: ['calls_in_flight', 'Calls that have not been answered'],
  logBytes: ['log_bytes', 'Bytes kept for clients that are slow or may reconnect'],
} as const

/** The states in which requests are sent to a server. */
const UP: ReadonlySet<string> = new Set(['ready', 'degraded', 'untried'])

/** Counters of each server. */
const SERVER_COUNTERS = {
  openings: ['server_breaker_openings_total', 'counter', 'Times the circuit breaker of a server opened'],
  retries: [
    'server_retries_total',
    'counter',
    'Requests and connections that failed before they arrived and were retried',
  ],
  running: ['server_calls_running', 'gauge', 'Calls in progress at servers whose concurrency is limited'],
  waiting: ['server_calls_waiting', 'gauge', 'Calls in the queue of servers whose concurrency is limited'],
} as const

/** The body of `GET /metrics` and its media type. */
export interface MetricsText {
  readonly type: string
  readonly text: string
}

type Values = MetricValueWithName<string>[]
interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly read: () => Values
}

const PREFIX = 'dragoman_'

/** Creates the function that writes `GET /metrics`. The library is loaded by the first request. */
export const createMetricsReader = (metrics: Metrics, source: MetricsSource): (() => Promise<MetricsText>) => {
  let registry: Promise<Registry> | undefined
  return async () => {
    registry ??= createRegistry(familiesOf(metrics, source))
    const [own, process] = await Promise.all([registry, processRegistry()])
    return { type: own.contentType, text: `${await own.metrics()}\n${await process.metrics()}` }
  }
}

let processMetrics: Promise<Registry> | undefined

/** Memory, processor and event loop: shared by all gateways of the process. */
const processRegistry = (): Promise<Registry> => {
  processMetrics ??= import('prom-client').then(({ Registry, collectDefaultMetrics }) => {
    const register = new Registry()
    collectDefaultMetrics({ register })
    return register
  })
  return processMetrics
}

const createRegistry = async (families: readonly Family[]): Promise<Registry> => {
  const { Registry } = await import('prom-client')
  const registry = new Registry()
  for (const family of families) registry.registerMetric(asMetric(family))
  return registry
}

/** The library reads only the values of a metric when it writes; ours are counted elsewhere. */
const asMetric = ({ name, help, type, read }: Family): Metric =>
  ({
    name: PREFIX + name,
    get: async () => ({
      name: PREFIX + name,
      help,
      type,
      aggregator: 'sum',
      values: read(),
    }),
  }) as unknown as Metric

const familiesOf = (metrics: Metrics, source: MetricsSource): Family[] => [
  {
    name: 'info',
    help: 'The version of the gateway',
    type: 'gauge',
    read: () => [metricValue(1, { version: source.version })],
  },
  {
    name: 'requests_total',
    help: 'MCP requests that ended, by dialect, method and outcome',
    type: 'counter',
    read: () => metrics.rows.flatMap(outcomesOf),
  },
  {
    name: 'request_duration_seconds',
    help: 'Time from a request to its answer, without cancelled and standing requests',
    type: 'histogram',
    read: () => metrics.rows.filter(({ isTimed }) => isTimed).flatMap(durationsOf),
  },
  {
    name: 'upstream_failures_total',
    help: 'Requests that a server did not answer, by server and reason',
    type: 'counter',
    read: () => metrics.failures().map(({ count, server, reason }) => metricValue(count, { server, reason })),
  },
  ...callFamilies(source.calls ?? (() => [])),
  {
    name: 'server_up',
    help: '1 if requests are sent to the server (ready, degraded or untried)',
    type: 'gauge',
    read: () => source.servers().map(({ name, state }) => metricValue(UP.has(state) ? 1 : 0, { server: name })),
  },
  {
    name: 'server_state',
    help: '1 for the state each server is in, 0 for all others',
    type: 'gauge',
    read: () => source.servers().flatMap(server => source.states.map(state => stateOf(server, state))),
  },
  ...Object.entries(SERVER_COUNTERS).map(
    ([key, [name, type, help]]): Family => ({
      name,
      help,
      type,
      read: () =>
        source.servers().flatMap(({ name: server, figures }) => {
          const value = figures?.[key as keyof typeof SERVER_COUNTERS]
          return value === undefined ? [] : [metricValue(value, { server })]
        }),
    }),
  ),
  {
    name: 'server_info',
    help: 'The revision of the protocol that each server speaks',
    type: 'gauge',
    read: () =>
      source.servers().flatMap(({ name, revision }) => (revision ? [metricValue(1, { server: name, revision })] : [])),
  },
  ...Object.entries(GAUGES).map(
    ([key, [name, help]]): Family => ({
      name,
      help,
      type: 'gauge',
      read: () => [metricValue(source.load()[key as keyof typeof GAUGES], {})],
    }),
  ),
]

const callFamilies = (rows: () => readonly CallCounts[]): Family[] => {
  const ofServers = () => rows().filter(({ tool }) => tool === undefined)
  const ofTools = () => rows().filter(({ tool }) => tool !== undefined)
  return [
    {
      name: 'server_calls_total',
      help: 'Requests that each server answered or failed to answer, by outcome',
      type: 'counter',
      read: () => ofServers().flatMap(callOutcomes),
    },
    {
      name: 'server_call_seconds_total',
      help: 'Time that each server took for them',
      type: 'counter',
      read: () => ofServers().map(row => metricValue(row.seconds, labelsOf(row))),
    },
    {
      name: 'tool_calls_total',
      help: 'Calls of each listed tool, by outcome; tools that are not listed count as other',
      type: 'counter',
      read: () => ofTools().flatMap(callOutcomes),
    },
    {
      name: 'tool_call_seconds_total',
      help: 'Time that each tool took for them',
      type: 'counter',
      read: () => ofTools().map(row => metricValue(row.seconds, labelsOf(row))),
    },
  ]
}

const labelsOf = ({ server, tool }: CallCounts): Record<string, string> =>
  tool === undefined ? { server } : { server, tool }

const callOutcomes = (row: CallCounts): Values =>
  (['ok', 'error'] as const)
    .filter(outcome => row[outcome] > 0)
    .map(outcome => metricValue(row[outcome], { ...labelsOf(row), outcome }))

const metricValue = (value: number, labels: Record<string, string | number>, metricName?: string): Values[number] =>
  ({ value, labels, ...(metricName && { metricName: PREFIX + metricName }) }) as Values[number]

const stateOf = ({ name, state }: ServerValues, wanted: string): Values[number] =>
  metricValue(state === wanted ? 1 : 0, { server: name, state: wanted })

const outcomesOf = ({ dialect, method, ok, error, cancelled }: RequestCounts): Values =>
  Object.entries({ ok, error, cancelled })
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => metricValue(count, { dialect, method, outcome }))

const durationsOf = ({ dialect, method, seconds, buckets }: RequestCounts): Values => {
  const labels = { dialect, method }
  let below = 0
  const counts = buckets.map((count, i) => {
    below += count
    return metricValue(below, { ...labels, le: BUCKETS[i] ?? '+Inf' }, 'request_duration_seconds_bucket')
  })
  return [
    ...counts,
    metricValue(seconds, labels, 'request_duration_seconds_sum'),
    metricValue(below, labels, 'request_duration_seconds_count'),
  ]
}
