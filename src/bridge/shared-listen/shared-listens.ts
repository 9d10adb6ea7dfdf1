import { compactCaller } from '../../protocol/callers.ts'
import { capabilitiesFingerprint } from '../../protocol/capabilities.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { RpcError } from '../../protocol/errors.ts'
import type { Caller, Exchange, Peer, Upstream } from '../../protocol/exchange.ts'
import { filterOf } from './listen-filter.ts'
import { SharedListen } from './shared-listen.ts'

const NO_HEADERS: Caller['headers'] = new Map()
const UNSUPPORTED_MS = 10_000 // each session listens, and a server without the method need not be asked for each

interface Refusal {
  readonly error: RpcError
  readonly until: number
}

/** The listens at one server: one for each principal and its set of capabilities. */
export class SharedListens {
  readonly #upstream: Upstream
  readonly #shared = new Map<Peer, Map<string, SharedListen>>()
  readonly #all = new Set<SharedListen>()
  #refusals = new WeakMap<Peer, Refusal>() // of servers that do not know the method

  constructor(upstream: Upstream) {
    this.#upstream = upstream
  }

  /** Serves a `subscriptions/listen` of that peer, which is modern. */
  listen(exchange: Exchange, peer: Peer): void {
    const { params, caller } = exchange
    const refusal = this.#refusals.get(peer)
    if (refusal && refusal.until > Date.now())
      return void deliver(exchange.sink, { kind: 'failure', error: refusal.error })
    const refused = ({ code, message, data }: RpcError): void => {
      const error = { code, message, data: data?.compact() } // it outlives the message it came in
      this.#refusals.set(peer, { error, until: Date.now() + UNSUPPORTED_MS })
    }
    const key = filterOf(params) && shareKey(caller)
    if (key === undefined) return this.#listenAlone(exchange, refused)
    const ofPeer = this.#shared.get(peer) ?? new Map<string, SharedListen>()
    this.#shared.set(peer, ofPeer)
    const forget = (): void => {
      ofPeer.delete(key)
      if (ofPeer.size === 0) this.#shared.delete(peer)
    }
    const shared = ofPeer.get(key) ?? this.#create(caller, refused, forget)
    ofPeer.set(key, shared)
    shared.add(exchange)
  }

  /** The server is back: lost listens are sent again at once. */
  reconnect(): void {
    this.#refusals = new WeakMap()
    for (const listen of [...this.#all]) listen.reconnect()
  }

  #listenAlone(exchange: Exchange, onUnsupported: (error: RpcError) => void): void {
    this.#create(exchange.caller, onUnsupported, () => {}, exchange).add(exchange)
  }

  #create(
    requester: Caller,
    onUnsupported: (error: RpcError) => void,
    onEmpty: () => void,
    alone?: Exchange,
  ): SharedListen {
    const caller = { ...compactCaller(requester), headers: NO_HEADERS } // it outlives the request
    const listen: SharedListen = new SharedListen({
      caller,
      params: alone?.params.compact(),
      open: () => this.#upstream.open(caller),
      separate: exchange => this.#listenAlone(exchange, onUnsupported),
      onUnsupported,
      onEmpty: () => {
        this.#all.delete(listen)
        onEmpty()
      },
    })
    this.#all.add(listen)
    return listen
  }
}

/** Equal for callers that share a listen; undefined for an anonymous caller without a session. */
const shareKey = ({ workspace, principal, session, capabilities, logLevel }: Caller): string | undefined => {
  if (principal === undefined && session === undefined) return undefined
  const owner = principal === undefined ? [workspace, session] : [principal]
  return JSON.stringify([capabilitiesFingerprint(capabilities), logLevel, ...owner])
}
