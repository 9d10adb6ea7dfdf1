import type { Registry } from 'prom-client'
import { BUCKETS, type Metrics, type RequestCounts } from './metrics.ts'
import type { CallCounts } from './server-calls.ts'

/** Values that are read when metrics are requested. */
export interface MetricsSource {
  readonly version: string
  readonly load: () => Readonly<Record<'sessions' | 'channels' | 'streams' | 'calls' | 'logBytes', number>>
  readonly states: readonly string[] // all possible states of a server
  readonly servers: () => readonly ServerValues[]
  readonly calls?: () => readonly CallCounts[]
  readonly storeStates: readonly string[] // all possible states of the store
  readonly store: () => StoreValues
  readonly forwards?: () => Readonly<Record<string, number>> // by outcome; absent without replicas
}

interface StoreValues extends Readonly<Record<'claims' | 'journalBytes' | 'queuedBytes' | 'forwards', number>> {
  readonly engine: string
  readonly state: string
  readonly replicas: readonly unknown[]
}

type ServerCounter = 'openings' | 'retries' | 'running' | 'waiting'
interface ServerValues {
  readonly name: string
  readonly state: string
  readonly revision?: string | undefined
  readonly figures?: Partial<Record<ServerCounter, number | undefined>> | undefined
}

/** What `/metrics` shows of the gateway, by name: type and description. */
const FAMILIES = {
  info: ['gauge', 'The version of the gateway'],
  requests_total: ['counter', 'MCP requests that ended, by dialect, method and outcome'],
  request_duration_seconds: ['histogram', 'Time from a request to its answer, without cancelled and standing requests'],
  upstream_failures_total: ['counter', 'Requests that a server did not answer, by server and reason'],
  server_calls_total: ['counter', 'Requests that each server answered or failed to answer, by outcome'],
  server_call_seconds_total: ['counter', 'Time that each server took for them'],
  tool_calls_total: ['counter', 'Calls of each listed tool, by outcome; tools that are not listed count as other'],
  tool_call_seconds_total: ['counter', 'Time that each tool took for them'],
  server_up: ['gauge', '1 if requests are sent to the server (ready, degraded or untried)'],
  server_state: ['gauge', '1 for the state each server is in, 0 for all others'],
  server_breaker_openings_total: ['counter', 'Times the circuit breaker of a server opened'],
  server_retries_total: ['counter', 'Requests and connections that failed before they arrived and were retried'],
  server_calls_running: ['gauge', 'Calls in progress at servers whose concurrency is limited'],
  server_calls_waiting: ['gauge', 'Calls in the queue of servers whose concurrency is limited'],
  server_info: ['gauge', 'The revision of the protocol that each server speaks'],
  sessions: ['gauge', 'Legacy sessions over Streamable HTTP'],
  channels: ['gauge', 'SSE channels'],
  streams: ['gauge', 'Open event streams, without SSE channels'],
  calls_in_flight: ['gauge', 'Calls that have not been answered'],
  log_bytes: ['gauge', 'Bytes kept for clients that are slow or may reconnect'],
  store_state: ['gauge', '1 for the state the store of sessions is in, 0 for all others'],
  store_claims: ['gauge', 'Records of the store that this replica holds'],
  store_journal_bytes: ['gauge', 'Stored events of streams that clients may resume'],
  store_queued_bytes: ['gauge', 'Bytes that wait to be written to the store'],
  replicas: ['gauge', 'Gateways that share the store, this one too'],
  forwards_total: ['counter', 'Requests sent on to other replicas, and those that failed, by outcome'],
  forwards_in_flight: ['gauge', 'Requests that other replicas serve for this one'],
} as const satisfies Record<string, readonly [type: 'counter' | 'gauge' | 'histogram', description: string]>

interface Sample {
  readonly value: number
  readonly labels: Readonly<Record<string, string | number>>
  readonly suffix?: string // of the name, in a histogram
}

const sample = (value: number, labels: Sample['labels'] = {}, suffix = ''): Sample => ({ value, labels, suffix })

type Readers = Readonly<Record<keyof typeof FAMILIES, () => readonly Sample[]>>

/** The states in which requests are sent to a server. */
const UP: ReadonlySet<string> = new Set(['ready', 'degraded', 'untried'])

const readersOf = (metrics: Metrics, source: MetricsSource): Readers => {
  const { version, load, states, servers, calls = () => [], storeStates, store, forwards } = source
  const ofServers = () => calls().filter(({ tool }) => tool === undefined)
  const ofTools = () => calls().filter(({ tool }) => tool !== undefined)
  const counterOf = (counter: ServerCounter) => () =>
    servers().flatMap(({ name: server, figures }) => {
      const value = figures?.[counter]
      return value === undefined ? [] : sample(value, { server })
    })
  return {
    info: () => [sample(1, { version })],
    requests_total: () => metrics.rows.flatMap(outcomesOf),
    request_duration_seconds: () => metrics.rows.filter(({ isTimed }) => isTimed).flatMap(durationsOf),
    upstream_failures_total: () =>
      metrics.failures().map(({ count, server, reason }) => sample(count, { server, reason })),
    server_calls_total: () => ofServers().flatMap(callOutcomes),
    server_call_seconds_total: () => ofServers().map(row => sample(row.seconds, labelsOf(row))),
    tool_calls_total: () => ofTools().flatMap(callOutcomes),
    tool_call_seconds_total: () => ofTools().map(row => sample(row.seconds, labelsOf(row))),
    server_up: () => servers().map(({ name, state }) => sample(UP.has(state) ? 1 : 0, { server: name })),
    server_state: () =>
      servers().flatMap(({ name, state: current }) =>
        states.map(state => sample(state === current ? 1 : 0, { server: name, state })),
      ),
    server_breaker_openings_total: counterOf('openings'),
    server_retries_total: counterOf('retries'),
    server_calls_running: counterOf('running'),
    server_calls_waiting: counterOf('waiting'),
    server_info: () =>
      servers().flatMap(({ name, revision }) => (revision ? sample(1, { server: name, revision }) : [])),
    sessions: () => [sample(load().sessions)],
    channels: () => [sample(load().channels)],
    streams: () => [sample(load().streams)],
    calls_in_flight: () => [sample(load().calls)],
    log_bytes: () => [sample(load().logBytes)],
    store_state: () =>
      storeStates.map(state => sample(state === store().state ? 1 : 0, { engine: store().engine, state })),
    store_claims: () => [sample(store().claims)],
    store_journal_bytes: () => [sample(store().journalBytes)],
    store_queued_bytes: () => [sample(store().queuedBytes)],
    replicas: () => [sample(store().replicas.length)],
    forwards_total: () => Object.entries(forwards?.() ?? {}).map(([outcome, count]) => sample(count, { outcome })),
    forwards_in_flight: () => [sample(store().forwards)],
  }
}

/** The body of `GET /metrics` and its media type. */
export interface MetricsText {
  readonly type: string
  readonly text: string
}

/** Creates the function that writes `GET /metrics`. The library for the process's own metrics is loaded by the first request. */
export const createMetricsReader = (metrics: Metrics, source: MetricsSource): (() => Promise<MetricsText>) => {
  const readers = readersOf(metrics, source)
  const families = Object.entries(FAMILIES) as [keyof typeof FAMILIES, readonly [string, string]][]
  return async () => {
    const process = await processRegistry()
    const own = families.map(([name, [type, description]]) => {
      const full = `dragoman_${name}`
      const lines = readers[name]().map(read => writeSample(full, read))
      return [`# HELP ${full} ${description}`, `# TYPE ${full} ${type}`, ...lines, ''].join('\n')
    })
    return { type: process.contentType, text: `${own.join('\n')}\n${await process.metrics()}` }
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

/** One line of the text format of Prometheus. */
const writeSample = (name: string, { value, labels, suffix }: Sample): string => {
  const written = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(String(text))}"`)
  return `${name}${suffix}${written.length > 0 ? `{${written.join(',')}}` : ''} ${value}`
}

const escapeLabel = (text: string): string => text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')

const labelsOf = ({ server, tool }: CallCounts): Record<string, string> =>
  tool === undefined ? { server } : { server, tool }

const callOutcomes = (row: CallCounts): Sample[] =>
  (['ok', 'error'] as const)
    .filter(outcome => row[outcome] > 0)
    .map(outcome => sample(row[outcome], { ...labelsOf(row), outcome }))

const outcomesOf = ({ dialect, method, ok, error, cancelled }: RequestCounts): Sample[] =>
  Object.entries({ ok, error, cancelled })
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => sample(count, { dialect, method, outcome }))

const durationsOf = ({ dialect, method, seconds, buckets }: RequestCounts): Sample[] => {
  const labels = { dialect, method }
  let below = 0
  const counts = buckets.map((count, i) => {
    below += count
    return sample(below, { ...labels, le: BUCKETS[i] ?? '+Inf' }, '_bucket')
  })
  return [...counts, sample(seconds, labels, '_sum'), sample(below, labels, '_count')]
}
