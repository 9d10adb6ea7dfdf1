import type { ParkingHome } from '../bridge/parking/parking.ts'
import type { ServerConfig } from '../config/snapshot.ts'
import type { CallerSeal } from '../fronts/cluster/caller-seal.ts'
import type { ClusterTls } from '../fronts/cluster/cluster-address.ts'
import { createServerCallProtocol } from '../fronts/cluster/server-calls.ts'
import type { Dispatch, Upstream } from '../protocol/exchange.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'
import { connectLabel } from '../upstreams/replica/label-upstream.ts'
import { PoolHomes } from '../upstreams/replica/pool-homes.ts'
import { withPoolHomes } from '../upstreams/replica/pooled-upstream.ts'
import { ReplicaClient } from '../upstreams/replica/replica-client.ts'

interface ServerReplicasOptions {
  readonly store: StateStore
  readonly seal: CallerSeal
  readonly tls: ClusterTls | undefined
  readonly log: Log
}

/** The servers that other replicas reach for this one, and this one for them. */
export interface ServerReplicas {
  /** Sends a retry to the replica that has parked its call. */
  readonly sendToHome: ParkingHome['send']
  /** The number of calls that other replicas serve for this one. */
  readonly calls: number
  /** Sends callers to the replica that holds their session at this server. `dispatch` enters above the bridge. */
  share(server: string, built: Upstream, guarded: Upstream, dispatch: Dispatch): Upstream
  /** A server that runs only on other replicas. */
  connect(config: ServerConfig & { readonly on: string }): Upstream
  /** Whether this replica holds the session of a pool id, or can claim it. */
  holds(pool: string): boolean | Promise<boolean>
  close(): Promise<void>
}

/** Joins the servers of this replica with those of the others. */
export const createServerReplicas = ({ store, seal, tls, log }: ServerReplicasOptions): ServerReplicas => {
  const { members } = store
  const replicas = new ReplicaClient({ members, protocol: createServerCallProtocol(seal), tls, log })
  const homes = new PoolHomes({ store, log })
  return {
    sendToHome: (home, server, exchange, onGone) => replicas.call({ replica: home, server }, exchange, onGone),
    get calls() {
      return replicas.size
    },
    share: (server, built, upstream, dispatch) =>
      withPoolHomes({ server, upstream, keyOf: caller => built.sharedKey?.(caller), homes, replicas, dispatch }),
    connect: config =>
      connectLabel({
        server: config.name,
        label: config.on,
        isPerSession: config.kind === 'process' && config.share === 'session',
        members,
        replicas,
      }),
    holds: pool => {
      const home = homes.locate(pool)
      return home instanceof Promise ? home.then(found => found === 'here') : home === 'here'
    },
    close: async () => {
      homes.close()
      await replicas.close()
    },
  }
}
