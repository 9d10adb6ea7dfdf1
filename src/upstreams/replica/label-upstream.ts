import { createHash } from 'node:crypto'
import { failWith } from '../../protocol/deliver.ts'
import type { Caller, Exchange, Peer, Upstream } from '../../protocol/exchange.ts'
import { MODERN } from '../../protocol/revisions.ts'
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

/**
 * A server that runs only on replicas with a label, seen from one without it: a modern server, whatever its era there.
 * The calls of one user go to the same replica, as long as it is alive.
 */
export const connectLabel = ({ server, label, isPerSession, members, replicas }: LabelOptions): Upstream => {
  const choose = ({ principal, session, affinity }: Caller): Replica | undefined => {
    const key = JSON.stringify([server, principal, isPerSession ? session : affinity])
    const candidates = members
      .all()
      .filter(({ replica, labels, address }) => replica !== members.self && address !== '' && labels.includes(label))
    // The highest hash wins: if a replica joins or leaves, few callers move.
    const ranked = candidates.map(member => ({ member, rank: rankOf(member.replica, key) }))
    return ranked.sort((a, b) => (a.rank < b.rank ? 1 : -1))[0]?.member
  }

  const peer: Peer = {
    revision: MODERN,
    asks: false,
    dispatch: exchange => {
      const chosen = choose(exchange.caller)
      if (!chosen) return failWith(exchange, noReplica(server, label))
      replicas.call({ replica: chosen.replica, server }, asSent(exchange), () => sendAgain(exchange))
    },
  }

  /** A client session becomes a conversation of its own there, if the server is to have a process for each. */
  const asSent = (exchange: Exchange): Exchange => {
    const { session, affinity } = exchange.caller
    const own = isPerSession && session !== undefined ? session : affinity
    return { ...exchange, caller: { ...exchange.caller, session: undefined, affinity: own } }
  }

  const sendAgain = (exchange: Exchange): void => {
    const { misses = 0, signal } = exchange
    if (signal.reason) return
    if (misses < MOST_MISSES) return peer.dispatch({ ...exchange, misses: misses + 1 })
    failWith(exchange, noReplica(server, label))
  }

  return {
    open: async caller => {
      if (!choose(caller)) throw noReplica(server, label)
      return peer
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
