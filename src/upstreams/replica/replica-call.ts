import type { IncomingHttpHeaders } from 'node:http'
import { rpcError } from '../../protocol/errors.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { MODERN } from '../../protocol/revisions.ts'
import type { SlotEntry } from '../../std/slot-list.ts'
import { encodeRequest, joinBuffers, type Message } from '../../wire/json-rpc.ts'
import { errorOfFailure, type FailureDetails } from '../failures.ts'
import type { PendingRequest } from '../http/http-client.ts'
import type { ResponseEnd, ResponseHandler } from '../http/response-reader.ts'
import { type CallOwner, type CallTransport, type Recovery, UpstreamCall } from '../session/call.ts'
import { withEnvelope } from '../stateless/envelope.ts'

/** Where a request goes: a server at a replica. */
export interface ReplicaTarget {
  readonly replica: string
  readonly server: string
  readonly pool?: string | undefined // the replica must hold the session of this pool id
}

/** What a call needs of the connections to other replicas. */
export interface ReplicaConnections {
  readonly deadlines: CallTransport<ReplicaTarget>['link']['deadlines']
  post(target: ReplicaTarget, exchange: Exchange, body: Buffer, handler: ResponseHandler): PendingRequest
  /** Whether the replica itself, and no other program at its address, has accepted the request. */
  isConfirmed(headers: IncomingHttpHeaders, replica: string): boolean
  /** The poll delay in a close-stream notification of the replica; undefined for any other message. */
  pollDelayOf(message: Message): number | undefined
  /** True if the request was rejected because of the clock there, which is known from now on. */
  learnClock(headers: IncomingHttpHeaders, replica: string): boolean
  /** The replica is not at its address. */
  reportDead(replica: string): Promise<void>
  finished(call: ReplicaCall): void
}

const LOST: FailureDetails = {
  reason: 'replica_lost',
  text: 'was reached through another replica, which was lost before it answered. The request may have been executed: check before you send it again',
}
const MISDIRECTED = 421
const GONE = rpcError('internal', 'gone') // delivered to no client

/** One request to a server through another replica. */
export class ReplicaCall implements CallTransport<ReplicaTarget>, CallOwner<ReplicaTarget>, SlotEntry {
  slot = -1
  readonly dialect = 'replica' // what its server hears is recorded there
  readonly revision = MODERN
  readonly link: CallTransport<ReplicaTarget>['link']
  readonly target: ReplicaTarget
  readonly #connections: ReplicaConnections
  readonly #call: UpstreamCall<ReplicaTarget>
  #isConfirmed = false
  #hasLearntClock = false
  #isUnsent = false // the replica was not there: to report it ends its lease, which cuts the calls to it

  /** `onGone` is called instead of the last frame if the replica is not there: it has not seen the request. */
  constructor(
    connections: ReplicaConnections,
    target: ReplicaTarget,
    exchange: Exchange,
    id: number,
    onGone: () => void,
  ) {
    this.#connections = connections
    this.target = target
    // Without a timeout: the other replica has one for its server, and a lease for itself.
    this.link = { name: target.server, deadlines: connections.deadlines, timeoutMs: 0 }
    const sink: Exchange['sink'] = frame => {
      if (frame.kind === 'failure' && frame.error === GONE) return onGone()
      return exchange.sink(frame)
    }
    this.#call = new UpstreamCall<ReplicaTarget>(this, this, { ...exchange, sink }, id)
  }

  start(): void {
    this.#call.start()
  }

  /** The lease of the replica has ended. */
  cut(): void {
    this.#lost()
  }

  send(call: UpstreamCall<ReplicaTarget>): PendingRequest {
    const { exchange } = call
    const params = withEnvelope(call.params, exchange.caller)
    const body = joinBuffers(encodeRequest(call.id, exchange.method, params))
    call.begin(this.target)
    call.recordSent(params)
    this.#isConfirmed = false
    return this.#connections.post(this.target, { ...exchange, params }, body, {
      started: (status, headers) => {
        this.#isConfirmed = this.#connections.isConfirmed(headers, this.target.replica)
        call.started(status, headers)
      },
      received: () => call.received(),
      message: message => (this.#isConfirmed ? this.#received(call, message) : undefined),
      ended: end => call.ended(end),
    })
  }

  recover(call: UpstreamCall<ReplicaTarget>, end: ResponseEnd): Recovery {
    if (end.kind !== 'refused') this.#broken(end)
    else if (!this.#isConfirmed) this.#rejected(end, call)
    else if (end.status === MISDIRECTED)
      call.fail(GONE) // another replica holds the session now
    else return undefined
    return 'handled'
  }

  // The replica sees the closed request as a cancellation.
  cancel(): void {}

  finished(): void {
    this.#connections.finished(this)
  }

  /** What the replica itself says is no message of the server, and not recorded as one. */
  #received(call: UpstreamCall<ReplicaTarget>, message: Message): void | Promise<void> {
    const { closeStream } = call.exchange
    const retryMs = closeStream && this.#connections.pollDelayOf(message)
    if (!closeStream || retryMs === undefined) return call.message(message)
    if (!call.isDone) closeStream(retryMs)
  }

  /** There will be no response. */
  #broken(end: ResponseEnd): void {
    const failure = end.kind === 'failed' ? end.failure : undefined
    if (failure?.isRefused) return this.#dead()
    if (failure?.reason === 'upstream_unreachable') return this.#unreachable(failure.text)
    if (failure?.reason === 'too_large') return this.#call.fail(errorOfFailure(this.target.server, failure))
    this.#lost()
  }

  /** A response of a replica that is not the one that was meant, or whose clock differs, or of another program. */
  #rejected({ status, headers }: Extract<ResponseEnd, { kind: 'refused' }>, call: UpstreamCall<ReplicaTarget>): void {
    if (status === MISDIRECTED) return this.#dead()
    if (this.#hasLearntClock || !this.#connections.learnClock(headers, this.target.replica))
      return this.#unreachable(`did not answer: HTTP ${status}`)
    this.#hasLearntClock = true
    call.post()
  }

  #dead(): void {
    this.#isUnsent = true
    const fail = (): void => this.#call.fail(GONE)
    this.#connections.reportDead(this.target.replica).then(fail, fail)
  }

  #unreachable(text: string): void {
    const failure: FailureDetails = {
      reason: 'replica_unreachable',
      text: `is reached through another replica, which ${text}; try again`,
    }
    this.#call.fail(errorOfFailure(this.target.server, failure))
  }

  /** What only reads may be sent again, and what has not been sent. */
  #lost(): void {
    const mayRepeat = this.#isUnsent || methodInfo(this.#call.exchange.method)?.safe === true
    this.#call.fail(mayRepeat ? GONE : errorOfFailure(this.target.server, LOST))
  }
}
