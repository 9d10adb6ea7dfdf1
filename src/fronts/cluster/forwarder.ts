import { Agent } from 'undici'
import { SlotList } from '../../std/slot-list.ts'
import type { Log } from '../../telemetry/log.ts'
import type { FrontRequest } from '../http/front-request.ts'
import { splitTarget } from '../http/listen.ts'
import type { CallerSeal, ForwardedCaller } from './caller-seal.ts'
import type { ClusterTls } from './cluster-address.ts'
import { Forward, type ForwardResult } from './forward.ts'
import { requestHeaders } from './forward-headers.ts'

/** A replica to forward to. */
export interface ForwardTarget {
  readonly replica: string
  readonly address: string // http://host:port
}

interface ForwarderOptions {
  readonly seal: CallerSeal
  readonly tls?: ClusterTls | undefined
  readonly log: Log
}

const CONNECT_MS = 2_000
const KEEP_ALIVE_MS = 30_000 // shorter than the listener's, which must not close a connection that is being used

/** Sends requests to other replicas, over connections that are kept open. */
export class Forwarder {
  readonly #seal: CallerSeal
  readonly #log: Log
  readonly #calls: Agent
  readonly #streams: Agent // apart: for each request a pool looks through all its busy connections
  readonly #active = new SlotList<Forward>()
  readonly #clocks = new Map<string, number>() // by replica: milliseconds ahead of this one

  constructor({ seal, tls, log }: ForwarderOptions) {
    this.#seal = seal
    this.#log = log
    const connect = { timeout: CONNECT_MS, ...tls }
    const options = { connect, headersTimeout: 0, bodyTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS }
    this.#calls = new Agent(options)
    this.#streams = new Agent(options)
  }

  /** The number of requests under way. */
  get size(): number {
    return this.#active.size
  }

  /** Forwards a request whose body, if it has one, has been read. Nothing has been sent to the client unless it is `passed`. */
  async forward(
    request: FrontRequest,
    body: Buffer | undefined,
    caller: ForwardedCaller,
    target: ForwardTarget,
  ): Promise<ForwardResult> {
    const result = await this.#send(request, body, caller, target)
    if (result.kind !== 'clock') return result
    this.#clocks.set(target.replica, result.there - Date.now())
    this.#log.info({ replica: target.replica, aheadMs: result.there - Date.now() }, 'clock of another replica differs')
    const second = await this.#send(request, body, caller, target)
    return second.kind === 'clock' ? { kind: 'unsent', isGone: false, why: 'its clock differs' } : second
  }

  /** The lease of a replica has ended: what was sent there gets no answer any more. */
  cut(replica: string): void {
    this.#clocks.delete(replica)
    for (const forward of this.#active.entries) if (forward.replica === replica) forward.cut()
  }

  /** Ends the streams that are open; their clients reconnect to another replica. */
  endStreams(): void {
    for (const forward of this.#active.entries) forward.end()
  }

  async close(): Promise<void> {
    await Promise.all([this.#calls.destroy(), this.#streams.destroy()])
  }

  #send(
    request: FrontRequest,
    body: Buffer | undefined,
    caller: ForwardedCaller,
    { replica, address }: ForwardTarget,
  ): Promise<ForwardResult> {
    const { raw, response } = request
    if (response.destroyed) return Promise.resolve({ kind: 'passed' })
    if (address === '') return Promise.resolve({ kind: 'unsent', isGone: false, why: 'it has announced no address' })
    const now = Date.now() + (this.#clocks.get(replica) ?? 0)
    const headers = requestHeaders(raw, this.#seal.seal(caller, replica, now))
    const agent = raw.method === 'GET' ? this.#streams : this.#calls
    return new Promise(resolve => {
      const forward = new Forward(request, body, replica, result => {
        this.#active.delete(forward)
        resolve(result)
      })
      this.#active.add(forward)
      const method = raw.method as 'GET'
      agent.dispatch({ origin: address, path: splitTarget(raw.url).url, method, headers, body: body ?? null }, forward)
    })
  }
}
