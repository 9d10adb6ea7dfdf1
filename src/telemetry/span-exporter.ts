import { backoffMs, within } from '../std/time.ts'
import type { ExportHealth } from './export-health.ts'
import { encodeTraces, type TelemetrySource } from './otlp-json.ts'
import type { OtlpTarget } from './otlp-post.ts'
import { SpanBatch } from './span-batch.ts'

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
  #batches: SpanBatch[] = [] // the first is sent next, the last takes further spans
  #queued = 0 // spans, also those that are being sent
  #timer: NodeJS.Timeout | undefined
  #sending: Promise<void> | undefined
  #failures = 0
  #isClosed = false

  constructor(options: SpanExporterOptions) {
    this.#options = options
  }

  get queued(): number {
    return this.#queued
  }

  /** Queues a span in its encoded form. */
  add(span: string): void {
    const { batch, health } = this.#options
    if (this.#queued >= batch.maxQueued || this.#isClosed) return health.drop('traces', 1)
    this.#lastBatch().add(span)
    this.#queued++
    if (this.#sending || this.#failures > 0) return
    if (this.#queued >= batch.maxBatch) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), batch.delayMs).unref()
  }

  /** Sends what is queued, for five seconds at most. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#flush()
    await within(CLOSE_MS, this.#sending ?? Promise.resolve(), () => {})
    clearTimeout(this.#timer)
    this.#options.health.drop('traces', this.#queued)
    this.#batches = []
    this.#queued = 0
  }

  #lastBatch(): SpanBatch {
    const last = this.#batches.at(-1)
    if (last && last.count < this.#options.batch.maxBatch) return last
    const added = new SpanBatch()
    this.#batches.push(added)
    return added
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
    })
  }

  async #sendAll(): Promise<void> {
    const { target, source, health } = this.#options
    for (let batch = this.#batches.shift(); batch; batch = this.#batches.shift()) {
      const { postOtlp } = await import('./otlp-post.ts') // with undici, which most gateways need not load
      const outcome = await postOtlp(target, encodeTraces(source(), batch.spans))
      health.record('traces', outcome)
      if (outcome.kind === 'failed') return this.#retryLater(batch, outcome.retryMs)
      this.#failures = 0
      this.#queued -= Math.min(batch.count, this.#queued) // none if the exporter was closed meanwhile
      if (outcome.kind === 'refused') health.drop('traces', batch.count)
    }
  }

  #retryLater(batch: SpanBatch, retryMs: number | undefined): void {
    if (this.#isClosed) return
    this.#batches.unshift(batch)
    const waitMs = retryMs ?? backoffMs(RETRY, this.#failures)
    this.#failures++
    this.#timer = setTimeout(() => this.#flush(), waitMs).unref()
  }
}
