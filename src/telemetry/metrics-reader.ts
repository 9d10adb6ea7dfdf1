import type { Registry } from 'prom-client'
import type { AuditCounts } from './audit-log.ts'
import type { ExportCounts } from './export-health.ts'
import { mergeFamilies, type ProcessMetrics } from './merge-metrics.ts'
import { BUCKETS, type Metrics, type RequestCounts } from './metrics.ts'
import type { CallCounts } from './server-calls.ts'

/** Values that are read when metrics are requested. */
export interface MetricsSource {
  readonly version: string
  readonly load: () => Readonly<Record<'sessions' | 'channels' | 'streams' | 'calls' | 'tasks' | 'logBytes', number>>
  readonly states: readonly string[] // all possible states of a server
  readonly servers: () => readonly ServerValues[]
  readonly workspaces?: () => readonly WorkspaceValues[]
  readonly calls?: () => readonly CallCounts[]
  readonly storeStates: readonly string[] // all possible states of the store
  readonly store: () => StoreValues
  readonly forwards?: () => Readonly<Record<string, number>> // by outcome; absent without replicas
  readonly audit?: (() => AuditCounts) | undefined // absent without an audit log
  readonly exports?: Readonly<Record<string, ExportCounts>> | undefined // by signal; absent without telemetry
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
  readonly toolSize?: SizeValues | undefined
  readonly largestTools?: readonly (SizeValues & { readonly name: string })[] | undefined
  readonly pins?: { readonly quarantined: number } | undefined
}

interface SizeValues {
  readonly bytes: number
  readonly tokens: number
}

interface WorkspaceValues {
  readonly name: string
  readonly toolList?: { readonly all: SizeValues; readonly listed: SizeValues } | undefined
}

export type MetricType = 'counter' | 'gauge' | 'histogram'

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
  server_tool_bytes: ['gauge', 'Bytes of the definitions of all tools of each server'],
  server_tool_tokens: ['gauge', 'Estimated tokens of the definitions of all tools of each server'],
  tool_bytes: ['gauge', 'Bytes of the definitions of the ten largest tools of each server'],
  tool_tokens: ['gauge', 'Estimated tokens of the definitions of the ten largest tools of each server'],
  tools_quarantined: ['gauge', 'Tools of each pinned server that wait for an approval'],
  workspace_tool_bytes: ['gauge', 'Bytes of all tools of each workspace (scope all), and of its list (scope listed)'],
  workspace_tool_tokens: ['gauge', 'Estimated tokens of all tools of each workspace, and of its list, by scope'],
  server_info: ['gauge', 'The revision of the protocol that each server speaks'],
  sessions: ['gauge', 'Legacy sessions over Streamable HTTP'],
  channels: ['gauge', 'SSE channels'],
  streams: ['gauge', 'Open event streams, without SSE channels'],
  calls_in_flight: ['gauge', 'Calls that have not been answered'],
  tasks_running: ['gauge', 'Calls that this process runs as tasks of the gateway'],
  log_bytes: ['gauge', 'Bytes kept for clients that are slow or may reconnect'],
  store_state: ['gauge', '1 for the state the store of sessions is in, 0 for all others'],
  store_claims: ['gauge', 'Records of the store that this replica holds'],
  store_journal_bytes: ['gauge', 'Stored events of streams that clients may resume'],
  store_queued_bytes: ['gauge', 'Bytes that wait to be written to the store'],
  replicas: ['gauge', 'Gateways that share the store, this one too'],
  forwards_total: ['counter', 'Requests sent on to other replicas, and those that failed, by outcome'],
  forwards_in_flight: ['gauge', 'Requests that other replicas serve for this one'],
  audit_events_total: ['counter', 'Events of the audit log that were written, and that were dropped'],
  audit_failures_total: ['counter', 'Attempts to write the audit log that failed'],
  telemetry_exports_total: ['counter', 'Requests to the collector of telemetry, by signal and outcome'],
  telemetry_dropped_total: ['counter', 'Spans and data points that reached no collector, by signal'],
} as const satisfies Record<string, readonly [type: MetricType, description: string]>

/** One value of a metric. */
export interface MetricSample {
  readonly value: number
  readonly labels: Readonly<Record<string, string | number>>
  readonly suffix?: string // of the name, in a histogram
}

const sample = (value: number, labels: MetricSample['labels'] = {}, suffix = ''): MetricSample => ({
  value,
  labels,
  suffix,
})

type Readers = Readonly<Record<keyof typeof FAMILIES, () => readonly MetricSample[]>>

/** The states in which requests are sent to a server. */
const UP: ReadonlySet<string> = new Set(['ready', 'degraded', 'untried'])

const readersOf = (metrics: Metrics, source: MetricsSource): Readers => {
  const { version, load, states, servers, calls = () => [], storeStates, store, forwards, audit, exports = {} } = source
  const { workspaces = () => [] } = source
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
    server_tool_bytes: () =>
      servers().flatMap(({ name, toolSize }) => sizeSamples('bytes', toolSize, { server: name })),
    server_tool_tokens: () =>
      servers().flatMap(({ name, toolSize }) => sizeSamples('tokens', toolSize, { server: name })),
    tool_bytes: () => servers().flatMap(server => largestSamples('bytes', server)),
    tool_tokens: () => servers().flatMap(server => largestSamples('tokens', server)),
    tools_quarantined: () =>
      servers().flatMap(({ name, pins }) => (pins ? sample(pins.quarantined, { server: name }) : [])),
    workspace_tool_bytes: () => workspaces().flatMap(workspace => workspaceSamples('bytes', workspace)),
    workspace_tool_tokens: () => workspaces().flatMap(workspace => workspaceSamples('tokens', workspace)),
    server_info: () =>
      servers().flatMap(({ name, revision }) => (revision ? sample(1, { server: name, revision }) : [])),
    sessions: () => [sample(load().sessions)],
    channels: () => [sample(load().channels)],
    streams: () => [sample(load().streams)],
    calls_in_flight: () => [sample(load().calls)],
    tasks_running: () => [sample(load().tasks)],
    log_bytes: () => [sample(load().logBytes)],
    store_state: () =>
      storeStates.map(state => sample(state === store().state ? 1 : 0, { engine: store().engine, state })),
    store_claims: () => [sample(store().claims)],
    store_journal_bytes: () => [sample(store().journalBytes)],
    store_queued_bytes: () => [sample(store().queuedBytes)],
    replicas: () => [sample(store().replicas.length)],
    forwards_total: () => Object.entries(forwards?.() ?? {}).map(([outcome, count]) => sample(count, { outcome })),
    forwards_in_flight: () => [sample(store().forwards)],
    audit_events_total: () => {
      const { written, dropped } = audit?.() ?? {}
      return Object.entries({ written, dropped }).flatMap(([outcome, count]) =>
        count === undefined ? [] : sample(count, { outcome }),
      )
    },
    audit_failures_total: () => (audit ? [sample(audit().failures)] : []),
    telemetry_exports_total: () =>
      Object.entries(exports).flatMap(([signal, { sent, failed }]) => [
        sample(sent, { signal, outcome: 'ok' }),
        sample(failed, { signal, outcome: 'error' }),
      ]),
    telemetry_dropped_total: () => Object.entries(exports).map(([signal, { dropped }]) => sample(dropped, { signal })),
  }
}

const sizeSamples = (
  unit: keyof SizeValues,
  size: SizeValues | undefined,
  labels: MetricSample['labels'],
): readonly MetricSample[] => (size ? [sample(size[unit], labels)] : [])

const largestSamples = (unit: keyof SizeValues, { name, largestTools = [] }: ServerValues): readonly MetricSample[] =>
  largestTools.map(tool => sample(tool[unit], { server: name, tool: tool.name }))

const workspaceSamples = (unit: keyof SizeValues, { name, toolList }: WorkspaceValues): readonly MetricSample[] =>
  (['all', 'listed'] as const).flatMap(scope => sizeSamples(unit, toolList?.[scope], { workspace: name, scope }))

/** A metric with its current values. */
export interface MetricFamily {
  readonly name: string // without `dragoman_`
  readonly type: MetricType
  readonly description: string
  readonly samples: readonly MetricSample[] // of a histogram: `_bucket`, `_sum` and `_count` of each set of labels
}

/** Creates the function that reads all metrics of the gateway. */
export const createFamilyReader = (metrics: Metrics, source: MetricsSource): (() => readonly MetricFamily[]) => {
  const readers = readersOf(metrics, source)
  const families = Object.entries(FAMILIES) as [keyof typeof FAMILIES, readonly [MetricType, string]][]
  return () => families.map(([name, [type, description]]) => ({ name, type, description, samples: readers[name]() }))
}

/** The body of `GET /metrics` and its media type. */
export interface MetricsText {
  readonly type: string
  readonly text: string
}

/**
 * Creates the function that writes `GET /metrics`. `readOthers` reads the other processes of the gateway. The library for the
 * process's own metrics is loaded by the first request.
 */
export const createMetricsReader =
  (
    readFamilies: () => readonly MetricFamily[],
    readOthers?: () => Promise<readonly ProcessMetrics[]>,
  ): (() => Promise<MetricsText>) =>
  async () => {
    const [process, others = []] = await Promise.all([processRegistry(), readOthers?.()])
    const families = mergeFamilies(
      readFamilies(),
      others.map(other => other.families),
    )
    const own = families.map(({ name, type, description, samples }) => {
      const full = `dragoman_${name}`
      const lines = samples.map(read => writeSample(full, read))
      return [`# HELP ${full} ${description}`, `# TYPE ${full} ${type}`, ...lines, ''].join('\n')
    })
    const figures = others.length === 0 ? process : await mergeProcesses(process, others)
    return { type: process.contentType, text: `${own.join('\n')}\n${await figures.metrics()}` }
  }

/** What this process tells the one that writes `GET /metrics`. */
export const readProcessMetrics = async (families: readonly MetricFamily[]): Promise<ProcessMetrics> => ({
  families,
  process: await (await processRegistry()).getMetricsAsJSON(),
})

/** Sums, or for some figures the mean, as the library defines it for each. */
const mergeProcesses = async (own: Registry, others: readonly ProcessMetrics[]): Promise<Registry> => {
  const { AggregatorRegistry } = await import('prom-client')
  const all = [
    await own.getMetricsAsJSON(),
    ...others.map(({ process }) => process).filter(figures => figures.length > 0),
  ]
  return AggregatorRegistry.aggregate(all)
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
const writeSample = (name: string, { value, labels, suffix }: MetricSample): string => {
  const written = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(String(text))}"`)
  return `${name}${suffix}${written.length > 0 ? `{${written.join(',')}}` : ''} ${value}`
}

const escapeLabel = (text: string): string => text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')

const labelsOf = ({ server, tool }: CallCounts): Record<string, string> =>
  tool === undefined ? { server } : { server, tool }

const callOutcomes = (row: CallCounts): MetricSample[] =>
  (['ok', 'error'] as const)
    .filter(outcome => row[outcome] > 0)
    .map(outcome => sample(row[outcome], { ...labelsOf(row), outcome }))

const outcomesOf = ({ dialect, method, ok, error, cancelled }: RequestCounts): MetricSample[] =>
  Object.entries({ ok, error, cancelled })
    .filter(([, count]) => count > 0)
    .map(([outcome, count]) => sample(count, { dialect, method, outcome }))

const durationsOf = ({ dialect, method, seconds, buckets }: RequestCounts): MetricSample[] => {
  const labels = { dialect, method }
  let below = 0
  const counts = buckets.map((count, i) => {
    below += count
    return sample(below, { ...labels, le: BUCKETS[i] ?? '+Inf' }, '_bucket')
  })
  return [...counts, sample(seconds, labels, '_sum'), sample(below, labels, '_count')]
}
