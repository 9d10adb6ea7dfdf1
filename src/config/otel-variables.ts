import { SAMPLERS, type SamplerName } from '../telemetry/sampling.ts'
import type { ConfigReport } from './problems.ts'
import type { Environment } from './variables.ts'

// The standard variables of OpenTelemetry: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/.
// As its specification wants it, an invalid value is reported and ignored, and an empty one counts as unset.

/** What the variables say about one signal. */
interface SignalVariables {
  readonly url: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly isOn: boolean
  readonly timeoutMs: number | undefined
  readonly isCompressed: boolean
}

/** What the variables say. */
export interface OtelVariables {
  readonly isDisabled: boolean
  readonly hasEndpoint: boolean
  readonly traces: SignalVariables
  readonly metrics: SignalVariables
  readonly serviceName: string | undefined
  readonly attributes: Readonly<Record<string, string>>
  readonly sampler: SamplerName
  readonly ratio: number | undefined
  readonly metricsMs: number | undefined
  readonly batch: { readonly delayMs: number; readonly maxQueued: number; readonly maxBatch: number }
}

const OTLP = 'OTEL_EXPORTER_OTLP_'
const DEFAULT_SAMPLER = 'parentbased_always_on'
const BATCH = { delayMs: 5000, maxQueued: 2048, maxBatch: 512 }
const MOST_QUEUED = 65_536

export const otelVariables = (env: Environment, report: ConfigReport): OtelVariables => {
  const isDisabled = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true'
  const endpoints = ['ENDPOINT', 'TRACES_ENDPOINT', 'METRICS_ENDPOINT'].map(name => textIn(env, OTLP + name))
  const hasEndpoint = endpoints.some(url => url !== undefined)
  const read = new VariableReader(env, report, hasEndpoint && !isDisabled)
  const { 'service.name': named, ...attributes } = read.pairs('OTEL_RESOURCE_ATTRIBUTES')
  return {
    isDisabled,
    hasEndpoint,
    traces: read.signal('traces'),
    metrics: read.signal('metrics'),
    serviceName: textIn(env, 'OTEL_SERVICE_NAME') ?? named,
    attributes,
    sampler: read.oneOf('OTEL_TRACES_SAMPLER', SAMPLERS) ?? DEFAULT_SAMPLER,
    ratio: read.number('OTEL_TRACES_SAMPLER_ARG', 0, 1),
    metricsMs: read.number('OTEL_METRIC_EXPORT_INTERVAL', 100),
    batch: {
      delayMs: read.number('OTEL_BSP_SCHEDULE_DELAY', 1) ?? BATCH.delayMs,
      maxQueued: read.number('OTEL_BSP_MAX_QUEUE_SIZE', 1, MOST_QUEUED) ?? BATCH.maxQueued,
      maxBatch: read.number('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 1, MOST_QUEUED) ?? BATCH.maxBatch,
    },
  }
}

const textIn = (env: Environment, name: string): string | undefined => env[name]?.trim() || undefined

/** Reads variables one by one; what is wrong becomes a warning, if telemetry is wanted at all. */
class VariableReader {
  readonly #env: Environment
  readonly #warn: (text: string) => void

  constructor(env: Environment, report: ConfigReport, isWanted: boolean) {
    this.#env = env
    this.#warn = text => {
      if (isWanted && !report.warnings.includes(text)) report.warnings.push(text)
    }
  }

  signal(signal: 'traces' | 'metrics'): SignalVariables {
    const upper = signal.toUpperCase()
    const own = (name: string): string | undefined => textIn(this.#env, `${OTLP}${upper}_${name}`)
    const specific = this.#url(`${OTLP}${upper}_ENDPOINT`)
    const base = this.#url(`${OTLP}ENDPOINT`)
    const exporter = textIn(this.#env, `OTEL_${upper}_EXPORTER`) ?? 'otlp'
    if (exporter !== 'otlp' && exporter !== 'none')
      this.#warn(`OTEL_${upper}_EXPORTER: only "otlp" and "none" are supported; no ${signal} are sent`)
    if ((own('PROTOCOL') ?? textIn(this.#env, `${OTLP}PROTOCOL`)) === 'grpc')
      this.#warn('OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not supported; JSON over HTTP is sent, mostly to port 4318')
    return {
      url: specific ?? (base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/${signal}`),
      headers: { ...this.pairs(`${OTLP}HEADERS`), ...this.pairs(`${OTLP}${upper}_HEADERS`) },
      isOn: exporter === 'otlp',
      timeoutMs: this.number(`${OTLP}${upper}_TIMEOUT`, 1) ?? this.number(`${OTLP}TIMEOUT`, 1),
      isCompressed: (own('COMPRESSION') ?? textIn(this.#env, `${OTLP}COMPRESSION`)) === 'gzip',
    }
  }

  number(name: string, least: number, most = 2 ** 31 - 1): number | undefined {
    const text = textIn(this.#env, name)
    if (text === undefined) return undefined
    const value = Number(text)
    if (value >= least && value <= most) return value
    this.#warn(`${name}: expected a number from ${least} to ${most}; ignored`)
    return undefined
  }

  oneOf<T extends string>(name: string, values: readonly T[]): T | undefined {
    const text = textIn(this.#env, name)
    const found = values.find(value => value === text)
    if (text !== undefined && found === undefined) this.#warn(`${name}: expected one of ${values.join(', ')}; ignored`)
    return found
  }

  /** `key=value,key=value`, the values percent-encoded. The values are not shown: they may be secrets. */
  pairs(name: string): Record<string, string> {
    const pairs: Record<string, string> = {}
    for (const part of (textIn(this.#env, name) ?? '').split(',').filter(text => text.trim() !== '')) {
      const [, key, value] = /^\s*([^=\s]+)\s*=(.*)$/s.exec(part) ?? []
      const decoded = value === undefined ? undefined : decode(value.trim())
      if (key === undefined || decoded === undefined)
        this.#warn(`${name}: expected key=value,key=value; a part is ignored`)
      else pairs[key] = decoded
    }
    return pairs
  }

  #url(name: string): string | undefined {
    const text = textIn(this.#env, name)
    if (text === undefined || (/^https?:\/\//i.test(text) && URL.canParse(text))) return text
    this.#warn(`${name}: expected a URL like "http://127.0.0.1:4318"; ignored`)
    return undefined
  }
}

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
