import type { MetricFamily, MetricSample } from './metrics-reader.ts'

/** What `/metrics` of one process shows: of the gateway, and of the process, as the Prometheus library describes it. */
export interface ProcessMetrics {
  readonly families: readonly MetricFamily[]
  readonly process: readonly object[]
}

/**
 * Gauges that say the same in every worker, or that the main process alone knows. All other values are summed. The main
 * process writes the audit log for all.
 */
const OF_MAIN: ReadonlySet<string> = new Set([
  'info',
  'server_up',
  'server_state',
  'server_tool_bytes',
  'server_tool_tokens',
  'tool_bytes',
  'tool_tokens',
  'tools_quarantined',
  'workspace_tool_bytes',
  'workspace_tool_tokens',
  'server_info',
  'store_state',
  'store_journal_bytes',
  'replicas',
  'audit_events_total',
  'audit_failures_total',
])

/** The metrics of a gateway of several processes; those of the main process are first. */
export const mergeFamilies = (
  own: readonly MetricFamily[],
  others: readonly (readonly MetricFamily[])[],
): readonly MetricFamily[] => {
  const samplesOf = (name: string): readonly MetricSample[] =>
    others.flatMap(families => families.find(family => family.name === name)?.samples ?? [])
  return own.map(family =>
    OF_MAIN.has(family.name)
      ? family
      : { ...family, samples: sumSamples([...family.samples, ...samplesOf(family.name)]) },
  )
}

/** The processes whose metrics are read. */
export interface MetricProcesses {
  /** What they answer, by process id. */
  ask(): Promise<ReadonlyMap<number, ProcessMetrics>>
  readonly pids: () => ReadonlySet<number> // that run
}

/**
 * Reads the metrics of other processes. Counters must not fall: of a process that does not answer the last ones count, and so
 * they do after its end.
 */
export const createProcessReader = ({ ask, pids }: MetricProcesses): (() => Promise<readonly ProcessMetrics[]>) => {
  const known = new Map<number, ProcessMetrics>()
  let ended: readonly MetricFamily[] | undefined
  return async () => {
    for (const [pid, metrics] of await ask()) known.set(pid, metrics)
    const running = pids()
    for (const [pid, { families }] of [...known]) {
      if (running.has(pid)) continue
      known.delete(pid)
      const counters = families.filter(({ type }) => type !== 'gauge')
      ended = ended ? mergeFamilies(ended, [counters]) : counters
    }
    return [...known.values(), ...(ended ? [{ families: ended, process: [] }] : [])]
  }
}

/** Samples with the same labels become one, at the place of the first: the buckets of a histogram stay in order. */
const sumSamples = (samples: readonly MetricSample[]): readonly MetricSample[] => {
  const sums = new Map<string, MetricSample>()
  for (const sample of samples) {
    const key = `${sample.suffix ?? ''} ${JSON.stringify(Object.entries(sample.labels).sort())}`
    const known = sums.get(key)
    sums.set(key, known ? { ...known, value: known.value + sample.value } : sample)
  }
  return [...sums.values()]
}
