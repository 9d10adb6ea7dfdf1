import type { Caller, Dispatch, Peer, Upstream } from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import { signed } from './introduction.ts'
import { askForLinks } from './links.ts'
import { createMirror, type Mirror } from './mirror.ts'
import { createParking, type ParkingOptions } from './parking/parking.ts'
import { askInRounds } from './rounds.ts'
import type { GreetingHabit } from './shared-session/settling.ts'
import { type OpenLane, SharedSession } from './shared-session/shared-session.ts'
import { createSubscriptions } from './subscriptions.ts'
import { translate } from './translate.ts'

/** Joins callers to servers of other revisions and other manners; equal ones meet directly. */
export interface Bridge {
  wrap(upstream: Upstream, server: string): Upstream
  close(): void
}

export const createBridge = (options: ParkingOptions): Bridge => {
  const parking = createParking(options)

  const wrap = (upstream: Upstream, server: string): Upstream => {
    const subscriptions = createSubscriptions()
    const place = parking.at(server)
    const mirrors = new WeakMap<Peer, Mirror>()
    const sessions = new WeakMap<Peer, SharedSession>()
    const habit: GreetingHabit = { asks: undefined }

    const openLane: OpenLane = async (caller, lane) => {
      const peer = await upstream.open(caller, lane)
      return isModern(peer.revision) ? undefined : shared(peer)
    }

    const shared = (peer: Peer): SharedSession => {
      const session = sessions.get(peer) ?? new SharedSession(peer, openLane, habit)
      sessions.set(peer, session)
      return session
    }

    /** What one peer lists another need not: they may be there for different callers. */
    const mirrorOf = (peer: Peer): Mirror => {
      const mirror = mirrors.get(peer) ?? createMirror()
      mirrors.set(peer, mirror)
      return mirror
    }

    /** What makes a peer of one era behave like one of the other, before anything is converted. */
    const behave = (caller: Caller, peer: Peer): Dispatch => {
      if (isModern(caller.revision) === isModern(peer.revision)) return peer.dispatch
      if (isModern(caller.revision)) return signed(shared(peer).introduction, askForLinks(shared(peer)))
      return peer.asks ? peer.dispatch : askInRounds(mirrorOf(peer).wrap(peer.dispatch), options)
    }

    const connect = (caller: Caller, peer: Peer): Peer => {
      const parks = peer.asks && isModern(caller.revision)
      if (peer.revision === caller.revision && !parks) return peer
      let dispatch = behave(caller, peer)
      if (peer.revision !== caller.revision) dispatch = translate(peer.revision, dispatch, subscriptions)
      if (parks) dispatch = place.wrap(dispatch)
      return { revision: caller.revision, asks: peer.asks && !parks, dispatch }
    }

    return {
      open: caller => upstream.open(caller).then(peer => connect(caller, peer)),
      resume: exchange => isModern(exchange.caller.revision) && place.resume(exchange),
      close: () => upstream.close(),
    }
  }

  return { wrap, close: parking.close }
}
