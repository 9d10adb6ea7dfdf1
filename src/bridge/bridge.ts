import type { Caller, Dispatch, Peer, Upstream } from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import { createParking } from './questions.ts'
import { createSubscriptions } from './subscriptions.ts'
import { translate } from './translate.ts'

interface Options {
  readonly questionTtlMs: number
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
    const connect = (caller: Caller, peer: Peer): Peer => {
      const parks = peer.asks && isModern(caller.revision)
      if (peer.revision === caller.revision && !parks) return peer
      let dispatch: Dispatch = peer.dispatch
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
