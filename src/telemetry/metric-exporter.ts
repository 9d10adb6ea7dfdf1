import { within } from '../std/time.ts'
import type { ExportHealth } from './export-health.ts'
import type { MetricFamily } from './metrics-reader.ts'
import { encodeMetrics, type TelemetrySource } from './otlp-json.ts'
import { encodeFamilies, encodeProcess } from './otlp-metrics.ts'
import type { OtlpTarget } from './otlp-post.ts'

interface MetricExporterOptions {
  readonly target: OtlpTarget
  readonly source: () => TelemetrySource
  readonly everyMs: number
  readonly read: () => readonly MetricFamily[]
  readonly health: ExportHealth
}

const CLOSE_MS = 2000 // for the last export

/** Sends all metrics to a collector at regular intervals. Counts are cumulative: what a failed export misses, the next one has. */
export class MetricExporter {
  readonly #options: MetricExporterOptions
  readonly #startUs = Date.now() * 1000
  readonly #timer: NodeJS.Timeout
  #sending: Promise<void> | undefined

  constructor(options: MetricExporterOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#export(), options.everyMs).unref()
  }

  /** Sends the last figures. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await within(CLOSE_MS, this.#sending?.then(() => this.#export()) ?? this.#export(), () => {})
  }

  /** A collector that is slower than the interval gets no second request meanwhile. */
  #export(): Promise<void> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined
    })
    return this.#sending
  }

  async #send(): Promise<void> {
    const { target, source, read, health } = this.#options
    const times = { startUs: this.#startUs, nowUs: Date.now() * 1000 }
    const metrics = [...encodeFamilies(read(), times), ...encodeProcess(times)]
    const { postOtlp } = await import('./otlp-post.ts') // with undici, which most gateways need not load
    health.record('metrics', await postOtlp(target, encodeMetrics(source(), metrics)))
  }
}
