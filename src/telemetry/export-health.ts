import type { Log } from './log.ts'
import type { PostOutcome } from './otlp-post.ts'

type TelemetrySignal = 'traces' | 'metrics'

/** Counts of one signal, for `/metrics`. */
export interface ExportCounts {
  sent: number // requests
  failed: number // requests, the repeated ones too
  dropped: number // spans that reached no collector
}

/** Counts exports, and logs one line when they begin to fail and one when they succeed again, for all signals together. */
export class ExportHealth {
  readonly counts: Readonly<Record<TelemetrySignal, ExportCounts>> = {
    traces: { sent: 0, failed: 0, dropped: 0 },
    metrics: { sent: 0, failed: 0, dropped: 0 },
  }
  readonly #log: Log
  readonly #failing = new Set<TelemetrySignal>()
  #hasLoggedPart = false
  #dropped = 0 // since exports began to fail

  constructor(log: Log) {
    this.#log = log
  }

  record(signal: TelemetrySignal, outcome: PostOutcome): void {
    const counts = this.counts[signal]
    if (outcome.kind === 'sent') {
      counts.sent++
      this.#succeeded(signal)
      if (outcome.rejected === 0) return
      counts.dropped += outcome.rejected
      if (!this.#hasLoggedPart) this.#log.warn({ signal, reason: outcome.reason }, 'collector accepted a part only')
      this.#hasLoggedPart = true
      return
    }
    counts.failed++
    if (this.#failing.size === 0)
      this.#log.warn({ signal, reason: outcome.reason }, 'telemetry not exported; calls go on, and it is tried again')
    this.#failing.add(signal)
  }

  drop(signal: TelemetrySignal, count: number): void {
    this.counts[signal].dropped += count
    this.#dropped += count
  }

  #succeeded(signal: TelemetrySignal): void {
    if (!this.#failing.delete(signal) || this.#failing.size > 0) return
    this.#log.info({ droppedSpans: this.#dropped }, 'telemetry exported again')
    this.#dropped = 0
  }
}
