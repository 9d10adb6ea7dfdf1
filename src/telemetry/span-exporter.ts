import { backoffMs, within } from '../std/time.ts'
import type { ExportHealth } from './export-health.ts'
import { encodeTraces, type TelemetrySource } from './otlp-json.ts'
import type { OtlpTarget } from './otlp-post.ts'

/** How spans are collected before they are sent. */
export interface BatchOptions {
  readonly delayMs: number // until spans are sent
  readonly maxQueued: number // spans; further ones are dropped
  readonly maxBatch: number // spans in one request
}

interface SpanExporterOptions {
  readonly target: OtlpTarget
  readonly source: () => TelemetrySource
  readonly batch: BatchOptions
  readonly health: ExportHealth
}

const RETRY = { firstMs: 1000, longestMs: 30_000 }
const CLOSE_MS = 5000 // to send what is queued when the gateway closes

/** Sends ended spans to a collector, in batches and one request at a time. Adding a span never waits and never fails. */
export class SpanExporter {
  readonly #options: SpanExporterOptions
  #queue: string[] = []
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #failures = 0
  #isClosed = false

  constructor(options: SpanExporterOptions) {
    this.#options = options
  }

  get queued(): number {
    return this.#queue.length
  }

  /** Queues a span in its encoded form. */
  add(span: string): void {
    const { batch, health } = this.#options
    if (this.#queue.length >= batch.maxQueued || this.#isClosed) return health.drop('traces', 1)
    this.#queue.push(span)
    if (this.#sending || this.#failures > 0) return
    if (this.#queue.length >= batch.maxBatch) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), batch.delayMs).unref()
  }

  /** Sends what is queued, for five seconds at most. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#flush()
    await within(CLOSE_MS, this.#sending ?? Promise.resolve(), () => {})
    clearTimeout(this.#timer)
    this.#options.health.drop('traces', this.#queue.length)
    this.#queue = []
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
  }

  async #sendAll(): Promise<void> {
    const { target, source, batch, health } = this.#options
    while (this.#queue.length > 0) {
      const spans = this.#queue.slice(0, batch.maxBatch)
      const { postOtlp } = await import('./otlp-post.ts') // with undici, which most gateways need not load
      const outcome = await postOtlp(target, encodeTraces(source(), spans))
      health.record('traces', outcome)
      if (outcome.kind === 'failed') return this.#retryLater(outcome.retryMs)
      this.#failures = 0
      if (outcome.kind === 'refused') health.drop('traces', spans.length)
      this.#queue.splice(0, spans.length)
    }
  }

  #retryLater(retryMs: number | undefined): void {
    if (this.#isClosed) return
    const waitMs = retryMs ?? backoffMs(RETRY, this.#failures)
    this.#failures++
    this.#timer = setTimeout(() => this.#flush(), waitMs).unref()
  }
}
