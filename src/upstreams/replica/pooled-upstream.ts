import { failWith } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Peer, Upstream } from '../../protocol/exchange.ts'
import { isModern, MODERN } from '../../protocol/revisions.ts'
import { UpstreamFailure } from '../failures.ts'
import { type PoolHome, type PoolHomes, poolId } from './pool-homes.ts'
import type { ReplicaClient } from './replica-client.ts'

interface PooledOptions {
  readonly server: string
  readonly upstream: Upstream // the server as this replica reaches it
  /** The key of the session that the caller shares with others; undefined if it needs none. */
  readonly keyOf: (caller: Caller) => string | undefined
  readonly homes: PoolHomes
  readonly replicas: ReplicaClient
  /** Sends a request to the server once more, from above the bridge: the next home may be this replica. */
  readonly dispatch: Dispatch
}

const MOST_MISSES = 4

/**
 * A server whose shared sessions live at one replica each: modern callers whose session lives elsewhere are sent there.
 * Legacy callers have a session at a front, and a session at the server that lives where it does.
 */
export const withPoolHomes = (options: PooledOptions): Upstream => {
  const { server, upstream, keyOf, homes, replicas, dispatch } = options

  /** The key of the session that the caller shares; undefined if it is served where it is. */
  const sharedKeyOf = (caller: Caller): string | undefined =>
    caller.session !== undefined || caller.isHealthCheck || !isModern(caller.revision) ? undefined : keyOf(caller)

  const open = (caller: Caller, sessionIndex = 0): Promise<Peer> => {
    const key = sessionIndex > 0 ? undefined : sharedKeyOf(caller)
    if (key === undefined) return upstream.open(caller, sessionIndex)
    const id = poolId(server, key)
    const home = homes.locate(id)
    if (home === 'here') return upstream.open(caller, sessionIndex)
    const openAt = (found: PoolHome): Promise<Peer> | Peer =>
      found === 'here' ? upstream.open(caller, sessionIndex) : peerAt(found, id)
    return home instanceof Promise ? home.then(openAt) : Promise.resolve(openAt(home))
  }

  // One peer for each home, so that what callers of one session share, like a listen, is shared here, too.
  const peers = new WeakMap<Exclude<PoolHome, 'here'>, Peer>()
  const peerAt = (home: Exclude<PoolHome, 'here'>, pool: string): Peer => {
    const peer = peers.get(home) ?? createPeer(home.replica, pool)
    peers.set(home, peer)
    return peer
  }

  const createPeer = (replica: string, pool: string): Peer => ({
    revision: MODERN,
    asks: false,
    isReplica: true,
    dispatch: exchange =>
      replicas.call({ replica, server, pool }, exchange, () => {
        homes.forget(pool)
        sendAgain(exchange)
      }),
  })

  /** The replica is gone, or holds the session no more. */
  const sendAgain = (exchange: Exchange): void => {
    const { misses = 0, signal } = exchange
    if (signal.reason) return
    if (misses < MOST_MISSES) return dispatch({ ...exchange, misses: misses + 1 })
    const text = 'has its session at another replica, which changes too often; try again'
    failWith(exchange, new UpstreamFailure(server, { reason: 'replica_unreachable', text }))
  }

  /** Where no home has to be looked for, a call costs what it does without replicas. */
  const knownPeer = (caller: Caller): Peer | undefined => {
    const key = sharedKeyOf(caller)
    return key === undefined || homes.holds(poolId(server, key)) ? upstream.knownPeer?.(caller) : undefined
  }

  const { probe } = upstream
  return { open, knownPeer, ...(probe && { probe: probe.bind(upstream) }), close: () => upstream.close() }
}
