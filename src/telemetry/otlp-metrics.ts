import type { MetricFamily, MetricSample } from './metrics-reader.ts'
import { encodeAttributes, encodeTime, type SpanAttributes } from './otlp-json.ts'

const CUMULATIVE = 2

/** Labels that have a name in the semantic conventions; all others are our own. */
const ATTRIBUTE: Readonly<Record<string, string>> = {
  method: 'mcp.method.name',
  tool: 'gen_ai.tool.name',
  revision: 'mcp.protocol.version',
}

/** Metrics that have a name in the semantic conventions. */
const CONVENTIONAL: Readonly<Record<string, string>> = {
  request_duration_seconds: 'mcp.server.operation.duration',
}

/** The time that figures are of; microseconds since 1970. */
export interface MetricTimes {
  readonly startUs: number // of the process: counters began at 0 then
  readonly nowUs: number
}

/**
 * The metrics of `/metrics` in the form of OTLP. A collector that serves Prometheus gives them the names of `/metrics`
 * again, because it appends units and `_total`.
 */
export const encodeFamilies = (families: readonly MetricFamily[], times: MetricTimes): readonly object[] =>
  families
    .filter(({ samples }) => samples.length > 0)
    .map(({ name, type, description, samples }) => {
      const seconds = /_seconds(_total)?$/.test(name)
      const bare = name.replace(/_total$/, '').replace(/_seconds$/, '')
      const head = { name: CONVENTIONAL[name] ?? `dragoman.${bare}`, description, unit: seconds ? 's' : '1' }
      if (type === 'histogram')
        return {
          ...head,
          histogram: { aggregationTemporality: CUMULATIVE, dataPoints: histogramPoints(samples, times) },
        }
      const dataPoints = samples.map(({ value, labels }) => ({ ...pointAt(times, labels), asDouble: value }))
      if (type === 'gauge') return { ...head, gauge: { dataPoints } }
      return { ...head, sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } }
    })

const attributesOf = (labels: MetricSample['labels']): SpanAttributes =>
  Object.fromEntries(
    Object.entries(labels).map(([label, value]) => [ATTRIBUTE[label] ?? `dragoman.${label}`, String(value)]),
  )

const pointAt = ({ startUs, nowUs }: MetricTimes, labels: MetricSample['labels']): object => ({
  attributes: encodeAttributes(attributesOf(labels)),
  startTimeUnixNano: encodeTime(startUs),
  timeUnixNano: encodeTime(nowUs),
})

/** One point for each set of labels; the buckets of Prometheus count everything below them, those of OTLP do not. */
const histogramPoints = (samples: readonly MetricSample[], times: MetricTimes): readonly object[] => {
  const groups = new Map<string, MetricSample[]>()
  for (const sample of samples) {
    const key = JSON.stringify(withoutBound(sample.labels))
    groups.set(key, [...(groups.get(key) ?? []), sample])
  }
  return [...groups.values()].map(group => {
    const figureOf = (suffix: string): number => group.find(sample => sample.suffix === suffix)?.value ?? 0
    const buckets = group.filter(({ suffix }) => suffix === '_bucket')
    const bounds = buckets.map(({ labels }) => Number(labels.le)).filter(Number.isFinite)
    const counts = buckets.map(({ value }, at) => value - (buckets[at - 1]?.value ?? 0))
    return {
      ...pointAt(times, withoutBound(group[0]?.labels ?? {})),
      count: String(figureOf('_count')),
      sum: figureOf('_sum'),
      bucketCounts: counts.map(String),
      explicitBounds: bounds,
    }
  })
}

const withoutBound = ({ le: _le, ...labels }: MetricSample['labels']): MetricSample['labels'] => labels

/** Memory and processor time of the process, by their names in the semantic conventions. */
export const encodeProcess = (times: MetricTimes): readonly object[] => {
  const { user, system } = process.cpuUsage()
  const cpu = Object.entries({ user, system }).map(([mode, microseconds]) => ({
    ...pointAt(times, {}),
    attributes: encodeAttributes({ 'cpu.mode': mode }),
    asDouble: microseconds / 1_000_000,
  }))
  const memory = [{ ...pointAt(times, {}), asDouble: process.memoryUsage.rss() }]
  return [
    {
      name: 'process.cpu.time',
      unit: 's',
      sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints: cpu },
    },
    {
      name: 'process.memory.usage',
      unit: 'By',
      sum: { aggregationTemporality: CUMULATIVE, isMonotonic: false, dataPoints: memory },
    },
  ]
}
