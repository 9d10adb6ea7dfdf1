import type { IncomingHttpHeaders } from 'node:http'
import type { Caller, Exchange } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { SlotList } from '../../std/slot-list.ts'
import type { Membership } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { encodeNotification, joinBuffers, type Message } from '../../wire/json-rpc.ts'
import { Deadlines } from '../deadlines.ts'
import type { ClientCertificate } from '../http/connections.ts'
import { HttpClient, type PendingRequest } from '../http/http-client.ts'
import { addCallerHeaders, POST_HEADERS } from '../http/http-link.ts'
import { type ResponseHandler, ResponseReader } from '../http/response-reader.ts'
import { mcpMethod, mcpName } from '../stateless/envelope.ts'
import { ReplicaCall, type ReplicaConnections, type ReplicaTarget } from './replica-call.ts'

/** How replicas write to each other; the front of the cluster port reads the same. */
export interface ReplicaProtocol {
  /** The headers that tell the replica `to` on whose behalf it calls the server; `now` is the time there. */
  callerHeaders(server: string, caller: Caller, to: string, now: number): readonly string[]
  /** The headers that say which session the replica must hold, that the gateway itself is the caller, and that the client can poll. */
  targetHeaders(pool: string | undefined, isHealthCheck: boolean, canPoll: boolean): readonly string[]
  /** The path of a server at another replica. */
  pathOf(server: string, caller: Caller): string
  /** The poll delay in a close-stream notification of the replica; undefined for any other message. */
  pollDelayOf(message: Message): number | undefined
  /** The replica that has accepted a request. */
  replicaIn(headers: IncomingHttpHeaders): string | undefined
  /** The time at a replica that did not accept a request because of it. */
  clockIn(headers: IncomingHttpHeaders): number | undefined
}

interface ReplicaClientOptions {
  readonly members: Pick<Membership, 'at' | 'reportDead' | 'onLeft'>
  readonly protocol: ReplicaProtocol
  readonly tls?: ClientCertificate | undefined
  readonly log: Log
}

const CONNECT_MS = 2000
const CUT_MS = 500 // for answers that are on their way, and for connections that are about to be refused
const MAX_BYTES = 64 * 1024 * 1024 // of one message, as from any server

/** Calls servers through other replicas, in MCP 2026-07-28 over their cluster ports. */
export class ReplicaClient implements ReplicaConnections {
  readonly deadlines = new Deadlines(1000)
  readonly #options: ReplicaClientOptions
  readonly #http: HttpClient
  readonly #clocks = new Map<string, number>() // by replica: milliseconds ahead of this one
  readonly #calls = new SlotList<ReplicaCall>()
  readonly #stopListening: () => void
  #lastId = 0

  constructor(options: ReplicaClientOptions) {
    const { tls, log, members } = options
    this.#options = options
    this.#http = new HttpClient({ secretHeaders: [], connectMs: CONNECT_MS, tls, deadlines: this.deadlines, log })
    this.#stopListening = members.onLeft(replica => this.#left(replica))
  }

  /** The number of calls under way. */
  get size(): number {
    return this.#calls.size
  }

  /**
   * Sends an exchange to a server at another replica. `onGone` is called instead of the last frame if that replica is not
   * there, or does not hold the session any more: it has not seen the request, which may be sent elsewhere.
   */
  call(target: ReplicaTarget, exchange: Exchange, onGone: () => void): void {
    if (!this.#options.members.at(target.replica)) return onGone()
    if (exchange.kind === 'notification') {
      const body = joinBuffers(encodeNotification(exchange.method, exchange.params))
      this.post(target, exchange, body, { message: () => {}, ended: () => {} })
      return
    }
    const call = new ReplicaCall(this, target, exchange, ++this.#lastId, onGone)
    this.#calls.add(call)
    call.start()
  }

  post(target: ReplicaTarget, exchange: Exchange, body: Buffer, handler: ResponseHandler): PendingRequest {
    const { members, protocol } = this.#options
    const address = members.at(target.replica)?.address ?? ''
    const path = protocol.pathOf(target.server, exchange.caller)
    return this.#http.send(
      {
        method: 'POST',
        target: { origin: address, path },
        headers: this.#headersOf(target, exchange),
        body,
        isLongLived: exchange.method === 'subscriptions/listen',
      },
      new ResponseReader(handler, MAX_BYTES),
    )
  }

  isConfirmed(headers: IncomingHttpHeaders, replica: string): boolean {
    return this.#options.protocol.replicaIn(headers) === replica
  }

  pollDelayOf(message: Message): number | undefined {
    return this.#options.protocol.pollDelayOf(message)
  }

  learnClock(headers: IncomingHttpHeaders, replica: string): boolean {
    const there = this.#options.protocol.clockIn(headers)
    if (there === undefined) return false
    this.#clocks.set(replica, there - Date.now())
    this.#options.log.info({ replica, aheadMs: there - Date.now() }, 'clock of another replica differs')
    return true
  }

  async reportDead(replica: string): Promise<void> {
    const { members, log } = this.#options
    log.warn({ replica, address: members.at(replica)?.address }, 'replica not reached')
    await members.reportDead(replica)
  }

  finished(call: ReplicaCall): void {
    this.#calls.delete(call)
  }

  async close(): Promise<void> {
    this.#stopListening()
    await this.#http.close()
  }

  #headersOf({ replica, server, pool }: ReplicaTarget, exchange: Exchange): string[] {
    const { kind, method, params, caller, closeStream } = exchange
    const { protocol } = this.#options
    const name = kind === 'request' ? mcpName(method, params) : undefined
    const now = Date.now() + (this.#clocks.get(replica) ?? 0)
    const headers = [...POST_HEADERS, 'mcp-protocol-version', MODERN, 'mcp-method', mcpMethod(method)]
    if (name !== undefined) headers.push('mcp-name', name)
    headers.push(...protocol.targetHeaders(pool, caller.isHealthCheck === true, closeStream !== undefined))
    headers.push(...protocol.callerHeaders(server, caller, replica, now))
    return addCallerHeaders(headers, exchange)
  }

  /** The lease of a replica has ended: what was sent there gets no answer any more. */
  #left(replica: string): void {
    this.#clocks.delete(replica)
    setTimeout(() => {
      for (const call of this.#calls.entries) if (call.target.replica === replica) call.cut()
    }, CUT_MS).unref()
  }
}
