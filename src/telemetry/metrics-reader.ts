import type { Metric, MetricValueWithName, Registry } from 'prom-client'
import { BUCKETS, type Metrics, type RequestCounts } from './metrics.ts'
import type { CallCounts } from './server-calls.ts'

/** Figures that are read off when somebody asks. */
export interface MetricsSource {
  readonly version: string
  readonly load: () => Readonly<Record<keyof typeof GAUGES, number>>
  readonly states: readonly string[] // all there are
  readonly servers: () => readonly Server[]
  readonly calls?: () => readonly CallCounts[]
}

interface Server {
  readonly name: string
  readonly state: string
  readonly revision?: string | undefined
  readonly figures?: Partial<Record<keyof typeof FIGURES, number | undefined>> | undefined
}

const GAUGES = {
  sessions: ['sessions', 'Legacy sessions over Streamable HTTP'],
  channels: ['channels', 'SSE channels'],
  streams: ['streams', 'Event streams that somebody reads, channels not counted'],
  calls: ['calls_in_flight', 'Calls that have not been answered'],
  logBytes: ['log_bytes', 'Bytes kept for clients that are behind or may come back'],
} as const

/** The states of a server in which callers are sent there. */
const UP: ReadonlySet<string> = new Set(['ready', 'degraded', 'untried'])

/** What is counted at the gate of each server. */
const FIGURES = {
  openings: ['server_breaker_openings_total', 'counter', 'Times a server went down and callers were told so at once'],
  retries: ['server_retries_total', 'counter', 'Requests and connections that never arrived and were tried once more'],
  running: ['server_calls_running', 'gauge', 'Calls under way at servers whose concurrency is limited'],
  waiting: ['server_calls_waiting', 'gauge', 'Calls that wait because as many as may run do run'],
} as const

/** The text of a scrape and its media type. */
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

/** Makes the answer to `GET /metrics`. The library is loaded by the first scrape, so that nobody pays for it before. */
export const createMetricsReader = (metrics: Metrics, live: MetricsSource): (() => Promise<MetricsText>) => {
  let registry: Promise<Registry> | undefined
  return async () => {
    registry ??= createRegistry(familiesOf(metrics, live))
    const [own, process] = await Promise.all([registry, processRegistry()])
    return { type: own.contentType, text: `${await own.metrics()}\n${await process.metrics()}` }
  }
}

let ofProcess: Promise<Registry> | undefined

/** Memory, processor and event loop: there is one process, however many gateways are in it. */
const processRegistry = (): Promise<Registry> => {
  ofProcess ??= import('prom-client').then(({ Registry, collectDefaultMetrics }) => {
    const register = new Registry()
    collectDefaultMetrics({ register })
    return register
  })
  return ofProcess
}

const createRegistry = async (families: readonly Family[]): Promise<Registry> => {
  const { Registry } = await import('prom-client')
  const registry = new Registry()
  for (const family of families) registry.registerMetric(asMetric(family))
  return registry
}

/** The library asks a metric for nothing but its values when it writes; ours are counted elsewhere. */
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

const familiesOf = (metrics: Metrics, live: MetricsSource): Family[] => [
  { name: 'info', help: 'The version that runs', type: 'gauge', read: () => [one(1, { version: live.version })] },
  {
    name: 'requests_total',
    help: 'MCP requests that ended, by the dialect they came in by, method and outcome',
    type: 'counter',
    read: () => metrics.rows.flatMap(outcomesOf),
  },
  {
    name: 'request_duration_seconds',
    help: 'Time from a request to its answer; requests that were cancelled or stand open are not in it',
    type: 'histogram',
    read: () => metrics.rows.filter(({ isTimed }) => isTimed).flatMap(durationsOf),
  },
  {
    name: 'upstream_failures_total',
    help: 'Requests that a server did not answer, by server and reason',
    type: 'counter',
    read: () => metrics.failures().map(({ count, server, reason }) => one(count, { server, reason })),
  },
  ...callFamilies(live.calls ?? (() => [])),
  {
    name: 'server_up',
    help: '1 if callers are sent to the server, because it answers or mostly does, or only they can find out',
    type: 'gauge',
    read: () => live.servers().map(({ name, state }) => one(UP.has(state) ? 1 : 0, { server: name })),
  },
  {
    name: 'server_state',
    help: '1 for the state each server is in, 0 for all others',
    type: 'gauge',
    read: () => live.servers().flatMap(server => live.states.map(state => stateOf(server, state))),
  },
  ...Object.entries(FIGURES).map(
    ([figure, [name, type, help]]): Family => ({
      name,
      help,
      type,
      read: () =>
        live.servers().flatMap(({ name: server, figures }) => {
          const value = figures?.[figure as keyof typeof FIGURES]
          return value === undefined ? [] : [one(value, { server })]
        }),
    }),
  ),
  {
    name: 'server_info',
    help: 'The revision of the protocol that each server speaks',
    type: 'gauge',
    read: () => live.servers().flatMap(({ name, revision }) => (revision ? [one(1, { server: name, revision })] : [])),
  },
  ...Object.entries(GAUGES).map(
    ([figure, [name, help]]): Family => ({
      name,
      help,
      type: 'gauge',
      read: () => [one(live.load()[figure as keyof typeof GAUGES], {})],
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
      read: () => ofServers().flatMap(endsOf),
    },
    {
      name: 'server_call_seconds_total',
      help: 'Time that each server took for them',
      type: 'counter',
      read: () => ofServers().map(row => one(row.seconds, labelsOf(row))),
    },
    {
      name: 'tool_calls_total',
      help: 'Calls of each listed tool, by outcome; tools that are not listed count as other',
      type: 'counter',
      read: () => ofTools().flatMap(endsOf),
    },
    {
      name: 'tool_call_seconds_total',
      help: 'Time that each tool took for them',
      type: 'counter',
      read: () => ofTools().map(row => one(row.seconds, labelsOf(row))),
    },
  ]
}

const labelsOf = ({ server, tool }: CallCounts): Record<string, string> =>
  tool === undefined ? { server } : { server, tool }

const endsOf = (row: CallCounts): Values =>
  (['ok', 'error'] as const)
    .filter(outcome => row[outcome] > 0)
    .map(outcome => one(row[outcome], { ...labelsOf(row), outcome }))

const one = (value: number, labels: Record<string, string | number>, metricName?: string): Values[number] =>
  ({ value, labels, ...(metricName && { metricName: PREFIX + metricName }) }) as Values[number]

const stateOf = ({ name, state }: Server, wanted: string): Values[number] =>
  one(state === wanted ? 1 : 0, { server: name, state: wanted })

const outcomesOf = ({ dialect, method, ok, error, cancelled }: RequestCounts): Values =>
  Object.entries({ ok, error, cancelled })
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => one(count, { dialect, method, outcome }))

const durationsOf = ({ dialect, method, seconds, buckets }: RequestCounts): Values => {
  const labels = { dialect, method }
  let below = 0
  const counts = buckets.map((count, i) => {
    below += count
    return one(below, { ...labels, le: BUCKETS[i] ?? '+Inf' }, 'request_duration_seconds_bucket')
  })
  return [
    ...counts,
    one(seconds, labels, 'request_duration_seconds_sum'),
    one(below, labels, 'request_duration_seconds_count'),
  ]
}
