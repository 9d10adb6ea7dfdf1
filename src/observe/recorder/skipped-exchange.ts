import type { AbortReason } from '../../protocol/cancellation.ts'
import type { Exchange, Frame, RequestRecord } from '../../protocol/exchange.ts'
import type { RequestFollower } from '../../telemetry/metrics.ts'
import { outcomeOf, type RequestOutcome } from '../request-facts.ts'
import type { RecordedExchange } from './recorded-exchange.ts'

/** The recorder, as an exchange that it skips sees it. */
export interface FailureRecorder {
  /** How often everything was forgotten. */
  readonly clears: number
  /** Undefined if that failure is skipped, too. */
  recordFailed(exchange: Exchange, dialect: string, ms: number): RecordedExchange | undefined
}

/** An exchange of a burst. It is recorded once it has failed or was cancelled, with what its client has sent and gets. */
export class SkippedExchange implements RequestRecord, RequestFollower<Frame> {
  readonly tap = undefined
  readonly trace = undefined
  readonly #recorder: FailureRecorder
  readonly #exchange: Exchange
  readonly #dialect: string
  readonly #clears: number
  #call: Exchange | undefined // that it is served as, if it is another
  #server: string | undefined
  #isDenied = false
  #recording: RecordedExchange | undefined

  constructor(recorder: FailureRecorder, exchange: Exchange, dialect: string) {
    this.#recorder = recorder
    this.#exchange = exchange
    this.#dialect = dialect
    this.#clears = recorder.clears
  }

  sentTo(server: string): void {
    this.#server = server
  }

  calls(call: Exchange): void {
    this.#call = call
  }

  denied(): void {
    this.#isDenied = true
  }

  pass(frame: Frame): Frame {
    return this.#recording ? this.#recording.pass(frame) : frame
  }

  ended(frame: Frame, ms: number): void {
    this.end(outcomeOf(this.#exchange.method, frame, this.#isDenied), ms, frame)
  }

  aborted({ kind }: Pick<AbortReason, 'kind'>, ms: number): void {
    this.end({ outcome: 'cancelled', reason: kind }, ms)
  }

  end(outcome: RequestOutcome, ms: number, frame?: Frame): void {
    if (!FAILURES.has(outcome.outcome) || this.#recorder.clears !== this.#clears) return
    this.#recording = this.#recorder.recordFailed(this.#exchange, this.#dialect, ms)
    if (this.#call) this.#recording?.calls(this.#call)
    if (this.#server !== undefined) this.#recording?.sentTo(this.#server)
    this.#recording?.end(outcome, ms, frame)
  }
}

/** Cancelled counts as a failure: its user will look for the reason. */
const FAILURES: ReadonlySet<RequestOutcome['outcome']> = new Set(['error', 'tool_error', 'denied', 'cancelled'])
