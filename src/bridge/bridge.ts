import type { Caller, Dispatch, Peer, Upstream } from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import { askForLinks } from './links.ts'
import { createMirror } from './mirror.ts'
import { createParking } from './questions.ts'
import { askInRounds } from './rounds.ts'
import { SharedSession } from './shared-session.ts'
import { createSubscriptions } from './subscriptions.ts'
import { translate } from './translate.ts'

interface Options {
  readonly questionTtlMs: number
  readonly mostParked?: number
}

/** Joins callers to servers of other revisions and other manners; equal ones meet directly. */
export interface Bridge {
  wrap(upstream: Upstream): Upstream
  close(): void
}

export const createBridge = (options: Options): Bridge => {
  const parking = createParking(options)

  const wrap = (upstream: Upstream): Upstream => {
    const subscriptions = createSubscriptions()
    const mirror = createMirror()
    const sessions = new WeakMap<Peer, SharedSession>()

    const shared = (peer: Peer): SharedSession => {
      const session = sessions.get(peer) ?? new SharedSession(peer)
      sessions.set(peer, session)
      return session
    }

    /** What makes a peer of one era behave like one of the other, before anything is converted. */
    const behave = (caller: Caller, peer: Peer): Dispatch => {
      if (isModern(caller.revision) === isModern(peer.revision)) return peer.dispatch
      if (isModern(caller.revision)) return askForLinks(shared(peer))
      return peer.asks ? peer.dispatch : askInRounds(mirror.wrap(peer.dispatch), options)
    }

    const connect = (caller: Caller, peer: Peer): Peer => {
      const parks = peer.asks && isModern(caller.revision)
      if (peer.revision === caller.revision && !parks) return peer
      let dispatch = behave(caller, peer)
      if (peer.revision !== caller.revision) dispatch = translate(peer.revision, dispatch, subscriptions)
      if (parks) dispatch = parking.wrap(dispatch)
      return { revision: caller.revision, asks: peer.asks && !parks, dispatch }
    }

    return {
      open: caller => upstream.open(caller).then(peer => connect(caller, peer)),
      close: () => upstream.close(),
    }
  }

  return { wrap, close: parking.close }
}
