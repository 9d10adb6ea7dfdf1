import type { Caller, Peer } from '../protocol/exchange.ts'
import { type Revision, taskSupportOf } from '../protocol/revisions.ts'
import { declaresTasks } from '../protocol/tasks.ts'

/** A peer as callers of one kind see it. */
interface ConnectedPeer {
  readonly callerRevision: Revision
  readonly hasTasks: boolean // the callers declare the extension
  readonly serverRevision: Revision // may change with the session behind the peer
  readonly asks: boolean
  readonly peer: Peer
}

/**
 * What the bridge has built on the peers of one server, so that a call builds nothing. It depends on the revisions of both
 * sides and on whether the caller declares tasks, and on nothing else of the caller.
 */
export class ConnectedPeers {
  readonly #connected = new WeakMap<Peer, ConnectedPeer[]>() // a few for each peer: there are few revisions

  find(caller: Caller, peer: Peer): Peer | undefined {
    const entries = this.#connected.get(peer)
    if (!entries) return undefined
    const hasTasks = declaresExtension(caller)
    for (const entry of entries)
      if (
        entry.callerRevision === caller.revision &&
        entry.serverRevision === peer.revision &&
        entry.asks === peer.asks &&
        entry.hasTasks === hasTasks
      )
        return entry.peer
    return undefined
  }

  /** Returns `connected`. */
  add(caller: Caller, peer: Peer, connected: Peer): Peer {
    const entries = this.#connected.get(peer) ?? []
    entries.push({
      callerRevision: caller.revision,
      hasTasks: declaresExtension(caller),
      serverRevision: peer.revision,
      asks: peer.asks,
      peer: connected,
    })
    this.#connected.set(peer, entries)
    return connected
  }
}

const declaresExtension = ({ revision, capabilities }: Caller): boolean =>
  taskSupportOf(revision) === 'extension' && declaresTasks(capabilities)
