import * as z from 'zod'
import type { SamplerName } from '../telemetry/sampling.ts'
import { fillInSection } from './fill-in-section.ts'
import { otelVariables } from './otel-variables.ts'
import type { ConfigReport } from './problems.ts'
import { readWith } from './read-with.ts'
import { flagSchema, object, oneOfSchema, textMap, textSchema, wholeNumber } from './schema-parts.ts'
import type { Environment } from './variables.ts'

/** Where traces and metrics are sent by OTLP. */
export interface TelemetryConfig {
  readonly traces?: SignalConfig | undefined // undefined: off
  readonly metrics?: SignalConfig | undefined
  readonly serviceName: string
  readonly attributes: Readonly<Record<string, string>> // of the resource
  readonly sampler: SamplerName
  readonly ratio: number // of traces, for samplers with a ratio
  readonly metricsMs: number // between two exports of metrics
  readonly batch: { readonly delayMs: number; readonly maxQueued: number; readonly maxBatch: number } // of spans
}

/** The endpoint of one signal. */
export interface SignalConfig {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly isCompressed: boolean
}

const HOUR = 3_600_000
const HTTP_URL = /^https?:\/\//i
const DEFAULTS = { serviceName: 'dragoman', timeoutMs: 10_000, metricsMs: 60_000, sampling: 1 }

const settings = object({
  endpoint: textSchema
    .refine(text => HTTP_URL.test(text) && URL.canParse(text), {
      error: 'expected the URL of an OTLP/HTTP receiver, like "http://127.0.0.1:4318"',
    })
    .optional()
    .describe('The base URL of an OTLP/HTTP receiver; OTEL_EXPORTER_OTLP_ENDPOINT when absent.'),
  headers: textMap.optional().describe('HTTP headers of every export; ${NAME} is filled in from the environment.'),
  traces: flagSchema.optional().describe('Whether traces are sent; true when absent.'),
  metrics: flagSchema.optional().describe('Whether metrics are sent; true when absent.'),
  sampling: z
    .number({ error: 'expected a number from 0 to 1' })
    .min(0, { error: 'expected a number from 0 to 1' })
    .max(1, { error: 'expected a number from 0 to 1' })
    .optional()
    .describe('The share of traces that are recorded, from 0 to 1, where the client has not decided; 1 when absent.'),
  serviceName: textSchema
    .min(1, { error: 'expected a name' })
    .optional()
    .describe('service.name of the gateway; OTEL_SERVICE_NAME or dragoman when absent.'),
  attributes: textMap.optional().describe('Further attributes of the resource.'),
  compression: oneOfSchema(['none', 'gzip']).optional().describe('How exports are compressed; not when absent.'),
  timeoutMs: wholeNumber(1, HOUR).optional().describe('Milliseconds an export may take; 10000 when absent.'),
  metricsMs: wholeNumber(100, 24 * HOUR)
    .optional()
    .describe('Milliseconds between two exports of metrics; 60000 when absent.'),
})

/** `telemetry`: OpenTelemetry over OTLP. */
export const telemetrySchema = z
  .union([z.literal(false), settings], { error: 'expected an object, or false' })
  .describe(
    'OpenTelemetry: traces and metrics, sent by OTLP over HTTP as JSON. Off without an endpoint; false: off even if the environment has one.',
  )

/** The section `telemetry`, with the standard variables of OpenTelemetry for what it leaves out; undefined if it is off. */
export const readTelemetry = (raw: unknown, env: Environment, report: ConfigReport): TelemetryConfig | undefined => {
  if (raw === false) return undefined
  const read = readWith(settings, fillInSection(raw ?? {}, env, ['telemetry'], report), ['telemetry'], report)
  const variables = otelVariables(env, report)
  if (!read || variables.isDisabled) return undefined
  const signal = (name: 'traces' | 'metrics'): SignalConfig | undefined => {
    const own = variables[name]
    const url = read.endpoint === undefined ? own.url : signalUrl(read.endpoint, name)
    if (url === undefined || !(read[name] ?? own.isOn)) return undefined
    return {
      url,
      headers: { ...own.headers, ...read.headers },
      timeoutMs: read.timeoutMs ?? own.timeoutMs ?? DEFAULTS.timeoutMs,
      isCompressed: read.compression === undefined ? own.isCompressed : read.compression === 'gzip',
    }
  }
  const [traces, metrics] = [signal('traces'), signal('metrics')]
  if (!traces && !metrics) {
    if (raw !== undefined && read.endpoint === undefined && !variables.hasEndpoint)
      report.problems.push({ path: ['telemetry'], message: 'needs an "endpoint", like "http://127.0.0.1:4318"' })
    return undefined
  }
  return {
    traces,
    metrics,
    serviceName: read.serviceName ?? variables.serviceName ?? DEFAULTS.serviceName,
    attributes: { ...variables.attributes, ...read.attributes },
    sampler: read.sampling === undefined ? variables.sampler : 'parentbased_traceidratio',
    ratio: read.sampling ?? variables.ratio ?? DEFAULTS.sampling,
    metricsMs: read.metricsMs ?? variables.metricsMs ?? DEFAULTS.metricsMs,
    batch: variables.batch,
  }
}

/** The URL of a signal below a base URL. */
const signalUrl = (base: string, signal: 'traces' | 'metrics'): string => `${base.replace(/\/+$/, '')}/v1/${signal}`
