import type { AbortReason } from '../protocol/cancellation.ts'
import type { Dispatch, Exchange, Frame, RequestRecord, RequestTrace } from '../protocol/exchange.ts'
import type { AuditLog } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'
import type { RequestFollower } from '../telemetry/metrics.ts'
import { type AuditedRequest, type AuditLines, auditedContent } from './audit-line.ts'
import type { FlightRecorder } from './recorder/flight-recorder.ts'
import type { RecordedExchange } from './recorder/recorded-exchange.ts'
import type { SkippedExchange } from './recorder/skipped-exchange.ts'
import { blamedServer, outcomeOf, type RequestOutcome, type RequestTarget, requestTarget } from './request-facts.ts'
import type { RequestTracing, TracedRequest } from './request-tracing.ts'

/** How requests are recorded; what is absent is off. */
export interface RequestRecorders {
  readonly audit?: RequestAudit | undefined
  readonly tracing?: RequestTracing | undefined
  readonly flight?: FlightRecorder | undefined // may be off; requests of the gateway's own are not recorded
  readonly log?: Log | undefined // gets a line for each request
}

/** The audit log, and what its lines contain. */
export interface RequestAudit {
  readonly log: AuditLog
  readonly lines: AuditLines
  readonly hasArguments: boolean
  readonly hasResults: boolean
  readonly replica: () => string
  readonly isServer: (name: string) => boolean
}

/** Makes the function that follows the requests of one dialect; it returns undefined while nothing records them. */
export const createFollower = (recorders: RequestRecorders, dialect: string) => {
  const { audit, tracing, log, flight } = recorders
  const recordsAll = audit !== undefined || log !== undefined
  return (exchange: Exchange): RequestFollower<Frame> | undefined => {
    const traced = tracing?.begin(exchange, dialect)
    const isInFlight = flight?.isOn === true && exchange.origin !== undefined
    if (recordsAll || traced?.isRecorded || (traced && isInFlight))
      return new RecordedRequest(recorders, dialect, exchange, traced)
    if (traced) return traced.changesContext ? new UnrecordedRequest(traced) : undefined
    return isInFlight ? flight.follow(exchange, dialect) : undefined
  }
}

/** A request that only its server is told something about: that its trace is not recorded. */
class UnrecordedRequest implements RequestFollower<Frame>, RequestRecord {
  readonly trace: RequestTrace

  constructor(trace: RequestTrace) {
    this.trace = trace
  }

  pass(frame: Frame): Frame {
    return frame
  }

  sentTo(): void {}
  denied(): void {}
  ended(): void {}
  aborted(): void {}
}

/** Records the notifications of clients of one dialect; requests pass. */
export const recordNotifications = (flight: FlightRecorder, dialect: string, dispatch: Dispatch): Dispatch => {
  const record = (exchange: Exchange): Exchange => {
    const recording = flight.begin(exchange, dialect)
    if (!recording) return exchange
    recording.end({ outcome: 'ok' }, 0)
    return { ...exchange, record: recording }
  }
  return exchange => dispatch(exchange.kind === 'notification' && flight.isOn ? record(exchange) : exchange)
}

const PENDING: RequestOutcome = { outcome: 'ok' } // until it ends

/** One request, from its arrival to the frame that ends it; then it is written wherever requests are recorded. */
class RecordedRequest implements RequestFollower<Frame>, RequestRecord, AuditedRequest {
  readonly exchange: Exchange
  readonly dialect: string
  readonly trace: RequestTrace | undefined
  readonly tap: RecordedExchange | undefined
  target: RequestTarget | undefined
  server: string | undefined // the one that got the request; what the records say of it once it has ended
  outcome: RequestOutcome = PENDING
  ms = 0
  bytesOut = 0
  readonly #recorders: RequestRecorders
  readonly #recording: RecordedExchange | SkippedExchange | undefined
  readonly #traced: TracedRequest | undefined
  #call: Exchange
  #hasSeveral = false
  #isDenied = false
  #frame: Frame | undefined // the last one

  constructor(recorders: RequestRecorders, dialect: string, exchange: Exchange, traced: TracedRequest | undefined) {
    this.#recorders = recorders
    this.dialect = dialect
    this.exchange = exchange
    this.#call = exchange
    this.target = requestTarget(exchange)
    this.#traced = traced
    this.trace = traced?.changesContext ? traced : undefined
    this.#recording = exchange.origin && recorders.flight?.follow(exchange, dialect)
    this.tap = this.#recording?.tap
  }

  sentTo(server: string): void {
    if (this.server !== undefined && this.server !== server) this.#hasSeveral = true
    this.server = server
    this.#recording?.sentTo(server)
  }

  calls(call: Exchange): void {
    this.#call = call
    this.target = requestTarget(call)
    this.#traced?.calls(call.method, this.target)
    this.#recording?.calls(call)
  }

  denied(): void {
    this.#isDenied = true
  }

  pass(frame: Frame): Frame {
    if (frame.kind === 'question') return this.#traced?.ask(frame) ?? frame
    if (frame.kind === 'notice') this.bytesOut += frame.params.size
    return this.#recording ? this.#recording.pass(frame) : frame
  }

  ended(frame: Frame, ms: number): void {
    this.bytesOut += bytesOf(frame)
    this.#end(outcomeOf(this.exchange.method, frame, this.#isDenied), ms, frame)
  }

  aborted({ kind }: Pick<AbortReason, 'kind'>, ms: number): void {
    this.#end({ outcome: 'cancelled', reason: kind }, ms)
  }

  get bytesIn(): number {
    return this.exchange.params.size
  }

  get traceId(): string | undefined {
    return this.#traced?.traceId
  }

  get replica(): string {
    return this.#recorders.audit?.replica() ?? ''
  }

  get arguments(): string | undefined {
    return this.#recorders.audit?.hasArguments ? auditedContent(this.#call.params.get('arguments')) : undefined
  }

  get result(): string | undefined {
    const frame = this.#recorders.audit?.hasResults ? this.#frame : undefined
    return frame?.kind === 'result' ? auditedContent(frame.result) : undefined
  }

  #end(outcome: RequestOutcome, ms: number, frame?: Frame): void {
    const { audit, log } = this.#recorders
    this.outcome = outcome
    this.ms = ms
    this.#frame = frame
    this.server = this.#hasSeveral ? 'several' : (this.server ?? this.#blamed(frame))
    if (audit) audit.log.add(audit.lines.make(this))
    this.#traced?.ended(outcome, this.server)
    this.#recording?.end(outcome, ms, frame)
    this.#frame = undefined
    if (!log) return
    const { method, caller } = this.exchange
    const shown = { dialect: this.dialect, method, workspace: caller.workspace, server: this.server }
    log.debug({ ...shown, ms: Math.round(ms * 10) / 10, outcome: outcome.outcome, code: outcome.code }, 'request ended')
  }

  /** A request that did not get to its server was for the one that the error names. */
  #blamed(frame: Frame | undefined): string | undefined {
    const named = frame && blamedServer(frame)
    return named !== undefined && this.#recorders.audit?.isServer(named) ? named : undefined
  }
}

const bytesOf = (frame: Frame): number => {
  if (frame.kind === 'result') return frame.result.size
  return frame.kind === 'failure' ? Buffer.byteLength(frame.error.message) + (frame.error.data?.size ?? 0) : 0
}
