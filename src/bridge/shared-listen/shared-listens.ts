import { compactCaller } from '../../protocol/callers.ts'
import { capabilitiesFingerprint } from '../../protocol/capabilities.ts'
import type { Caller, Exchange, Peer, Upstream } from '../../protocol/exchange.ts'
import { filterOf } from './listen-filter.ts'
import { SharedListen } from './shared-listen.ts'

const NO_HEADERS: Caller['headers'] = new Map()

/** The listens at one server: one for each principal and its set of capabilities. */
export class SharedListens {
  readonly #upstream: Upstream
  readonly #shared = new Map<Peer, Map<string, SharedListen>>()
  readonly #all = new Set<SharedListen>()

  constructor(upstream: Upstream) {
    this.#upstream = upstream
  }

  /** Serves a `subscriptions/listen` of that peer, which is modern. */
  listen(exchange: Exchange, peer: Peer): void {
    const { params, caller } = exchange
    const key = filterOf(params) && shareKey(caller)
    if (key === undefined) return this.#listenAlone(exchange)
    const ofPeer = this.#shared.get(peer) ?? new Map<string, SharedListen>()
    this.#shared.set(peer, ofPeer)
    const forget = (): void => {
      ofPeer.delete(key)
      if (ofPeer.size === 0) this.#shared.delete(peer)
    }
    const shared = ofPeer.get(key) ?? this.#create(caller, forget)
    ofPeer.set(key, shared)
    shared.add(exchange)
  }

  /** The server is back: lost listens are sent again at once. */
  reconnect(): void {
    for (const listen of [...this.#all]) listen.reconnect()
  }

  #listenAlone(exchange: Exchange): void {
    this.#create(exchange.caller, () => {}, exchange).add(exchange)
  }

  #create(requester: Caller, onEmpty: () => void, alone?: Exchange): SharedListen {
    const caller = { ...compactCaller(requester), headers: NO_HEADERS } // it outlives the request
    const listen: SharedListen = new SharedListen({
      caller,
      params: alone?.params.compact(),
      open: () => this.#upstream.open(caller),
      separate: exchange => this.#listenAlone(exchange),
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
