import type { Dispatch, Peer } from './exchange.ts'
import type { Revision } from './revisions.ts'

/** A class: an object with getters of its own costs V8 several closures and a slow map, for each session and layer. */
class DispatchingPeer implements Peer {
  readonly dispatch: Dispatch
  readonly hold?: () => () => void
  readonly #peer: Peer

  constructor(peer: Peer, dispatch: Dispatch) {
    this.#peer = peer
    this.dispatch = dispatch
    if (peer.hold) this.hold = peer.hold.bind(peer)
  }

  get revision(): Revision {
    return this.#peer.revision
  }

  get asks(): boolean {
    return this.#peer.asks
  }

  get correlates(): boolean {
    return this.#peer.correlates !== false
  }

  get runsTasks(): boolean {
    return this.#peer.runsTasks === true
  }

  get isReplica(): boolean {
    return this.#peer.isReplica === true
  }
}

/** The peer with another dispatch. Its other members are read on each access, because they may change. */
export const withDispatch = (peer: Peer, dispatch: Dispatch): Peer => new DispatchingPeer(peer, dispatch)
