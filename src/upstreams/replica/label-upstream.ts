import { createHash } from 'node:crypto'
import { failWith } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Peer, Upstream } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { Membership, Replica } from '../../stores/state/state-store.ts'
import { UpstreamFailure } from '../failures.ts'
import type { ReplicaClient } from './replica-client.ts'

interface LabelOptions {
  readonly server: string
  readonly label: string
  readonly isPerSession: boolean // each client session has a process of its own
  readonly members: Pick<Membership, 'all' | 'self'>
  readonly replicas: ReplicaClient
}

const MOST_MISSES = 4
const MOST_PEERS = 10_000
const PEER_MS = 60 * 60_000

/**
 * A server that runs only on replicas with a label, seen from one without it: a modern server, whatever its era there.
 * The calls of one user go to the same replica, as long as it is alive.
 */
export const connectLabel = ({ server, label, isPerSession, members, replicas }: LabelOptions): Upstream => {
  // One peer for each conversation there: what callers of one peer share, like a listen, goes to one process.
  const peers = new BoundedCache<Peer>(MOST_PEERS, PEER_MS)

  const choose = ({ principal, session, affinity }: Caller): Replica | undefined => {
    const key = JSON.stringify([server, principal, isPerSession ? session : affinity])
    const candidates = members
      .all()
      .filter(({ replica, labels, address }) => replica !== members.self && address !== '' && labels.includes(label))
    // The highest hash wins: if a replica joins or leaves, few callers move.
    const ranked = candidates.map(member => ({ member, rank: rankOf(member.replica, key) }))
    return ranked.sort((a, b) => (a.rank < b.rank ? 1 : -1))[0]?.member
  }

  const dispatch: Dispatch = exchange => {
    const chosen = choose(exchange.caller)
    if (!chosen) return failWith(exchange, noReplica(server, label))
    const affinity = affinityThere(exchange.caller)
    const sent = { ...exchange, caller: { ...exchange.caller, session: undefined, affinity } }
    replicas.call({ replica: chosen.replica, server }, sent, () => sendAgain(exchange))
  }

  /** A client session becomes a conversation of its own there, if the server is to have a process for each. */
  const affinityThere = ({ session, affinity }: Caller): string | undefined =>
    isPerSession && session !== undefined ? session : affinity

  const peerOf = (caller: Caller): Peer => {
    const key = JSON.stringify([caller.workspace, caller.principal, affinityThere(caller)])
    const known = peers.get(key)
    if (known) return known
    const peer = { revision: MODERN, asks: false, isReplica: true, dispatch }
    peers.set(key, peer)
    return peer
  }

  const sendAgain = (exchange: Exchange): void => {
    const { misses = 0, signal } = exchange
    if (signal.reason) return
    if (misses < MOST_MISSES) return dispatch({ ...exchange, misses: misses + 1 })
    failWith(exchange, noReplica(server, label))
  }

  return {
    open: async caller => {
      if (!choose(caller)) throw noReplica(server, label)
      return peerOf(caller)
    },
    close: async () => {},
  }
}

const rankOf = (replica: string, key: string): string => createHash('sha256').update(`${replica} ${key}`).digest('hex')

const noReplica = (server: string, label: string): UpstreamFailure =>
  new UpstreamFailure(server, {
    reason: 'no_replica',
    text: `runs only on replicas with the label "${label}", and none of them is running; start one with "cluster": { "labels": ["${label}"] }`,
  })
