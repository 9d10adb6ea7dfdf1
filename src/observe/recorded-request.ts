import type { AbortReason } from '../protocol/cancellation.ts'
import type { Dispatch, Exchange, Frame, RequestRecord, RequestTrace } from '../protocol/exchange.ts'
import type { AuditLog } from '../telemetry/audit-log.ts'
import type { Log } from '../telemetry/log.ts'
import type { RequestFollower } from '../telemetry/metrics.ts'
import { type AuditLines, auditedContent } from './audit-line.ts'
import type { FlightRecorder } from './recorder/flight-recorder.ts'
import type { RecordedExchange } from './recorder/recorded-exchange.ts'
import { blamedServer, outcomeOf, type RequestOutcome, type RequestTarget, requestTarget } from './request-facts.ts'
import type { RequestTracing } from './request-tracing.ts'

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
  const isFixed = audit !== undefined || tracing !== undefined || log !== undefined
  return (exchange: Exchange): RequestFollower<Frame> | undefined => {
    if (isFixed) return new RecordedRequest(recorders, dialect, exchange)
    if (!flight?.isOn || !exchange.origin) return undefined
    return flight.begin(exchange, dialect, requestTarget(exchange)?.name)
  }
}

/** Records the notifications of clients of one dialect; requests pass. */
export const recordNotifications = (flight: FlightRecorder, dialect: string, dispatch: Dispatch): Dispatch => {
  const record = (exchange: Exchange): Exchange => {
    const recording = flight.begin(exchange, dialect, undefined)
    if (!recording) return exchange
    recording.end({ outcome: 'ok' }, 0)
    return { ...exchange, record: recording }
  }
  return exchange => dispatch(exchange.kind === 'notification' && flight.isOn ? record(exchange) : exchange)
}

/** One request, from its arrival to the frame that ends it; then it is written wherever requests are recorded. */
class RecordedRequest implements RequestFollower<Frame>, RequestRecord {
  readonly trace: RequestTrace | undefined
  readonly tap: RecordedExchange | undefined
  readonly #recorders: RequestRecorders
  readonly #dialect: string
  readonly #exchange: Exchange
  #target: RequestTarget | undefined
  #call: Exchange
  readonly #traced: ReturnType<RequestTracing['begin']> | undefined
  #server: string | undefined
  #hasSeveral = false
  #isDenied = false
  #bytesOut = 0

  constructor(recorders: RequestRecorders, dialect: string, exchange: Exchange) {
    this.#recorders = recorders
    this.#dialect = dialect
    this.#exchange = exchange
    this.#call = exchange
    this.#target = requestTarget(exchange)
    this.#traced = recorders.tracing?.begin(exchange, dialect, this.#target)
    this.trace = this.#traced?.changesContext ? this.#traced : undefined
    this.tap = exchange.origin && recorders.flight?.begin(exchange, dialect, this.#target?.name)
  }

  sentTo(server: string): void {
    if (this.#server !== undefined && this.#server !== server) this.#hasSeveral = true
    this.#server = server
    this.tap?.sentTo(server)
  }

  calls(call: Exchange): void {
    this.#call = call
    this.#target = requestTarget(call)
    this.#traced?.calls(call.method, this.#target)
    this.tap?.calls(call)
  }

  denied(): void {
    this.#isDenied = true
  }

  pass(frame: Frame): Frame {
    if (frame.kind === 'question') return this.#traced?.ask(frame) ?? frame
    if (frame.kind === 'notice') this.#bytesOut += frame.params.size
    return this.tap ? this.tap.pass(frame) : frame
  }

  ended(frame: Frame, ms: number): void {
    this.#bytesOut += bytesOf(frame)
    this.#end(outcomeOf(this.#exchange.method, frame, this.#isDenied), ms, frame)
  }

  aborted({ kind }: Pick<AbortReason, 'kind'>, ms: number): void {
    this.#end({ outcome: 'cancelled', reason: kind }, ms)
  }

  #end(outcome: RequestOutcome, ms: number, frame?: Frame): void {
    const { audit, log } = this.#recorders
    const server = this.#hasSeveral ? 'several' : (this.#server ?? this.#blamed(frame))
    if (audit) this.#write(audit, outcome, server, ms, frame)
    this.#traced?.ended(outcome, server)
    this.tap?.end(outcome, ms, frame)
    if (!log) return
    const { method, caller } = this.#exchange
    const fields = { dialect: this.#dialect, method, workspace: caller.workspace, server, ms: Math.round(ms * 10) / 10 }
    log.debug({ ...fields, outcome: outcome.outcome, code: outcome.code }, 'request ended')
  }

  /** A request that did not get to its server was for the one that the error names. */
  #blamed(frame: Frame | undefined): string | undefined {
    const named = frame && blamedServer(frame)
    return named !== undefined && this.#recorders.audit?.isServer(named) ? named : undefined
  }

  #write(audit: RequestAudit, outcome: RequestOutcome, server: string | undefined, ms: number, frame?: Frame): void {
    const exchange = this.#exchange
    const { log, lines, hasArguments, hasResults, replica } = audit
    log.add(
      lines.write({
        exchange,
        dialect: this.#dialect,
        target: this.#target,
        server,
        outcome,
        ms,
        bytesIn: exchange.params.size,
        bytesOut: this.#bytesOut,
        traceId: this.#traced?.traceId,
        replica: replica(),
        arguments: hasArguments ? auditedContent(this.#call.params.get('arguments')) : undefined,
        result: hasResults && frame?.kind === 'result' ? auditedContent(frame.result) : undefined,
      }),
    )
  }
}

const bytesOf = (frame: Frame): number => {
  if (frame.kind === 'result') return frame.result.size
  return frame.kind === 'failure' ? Buffer.byteLength(frame.error.message) + (frame.error.data?.size ?? 0) : 0
}
