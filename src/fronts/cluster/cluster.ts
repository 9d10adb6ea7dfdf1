import type { ClusterConfig, Limits } from '../../config/snapshot.ts'
import type { Admit } from '../../protocol/admission.ts'
import type { Policy } from '../../protocol/policy.ts'
import { sleep } from '../../std/time.ts'
import type { Log } from '../../telemetry/log.ts'
import type { ActiveCalls } from '../http/active-calls.ts'
import type { FrontState } from '../http/front-request.ts'
import type { HttpRoutes } from '../http/listen.ts'
import { isMessagePath } from './addressee.ts'
import type { CallerSeal } from './caller-seal.ts'
import type { ClusterTls } from './cluster-address.ts'
import { createForwardedAdmission, openClusterListener } from './cluster-listener.ts'
import { Forwarder } from './forwarder.ts'
import { createRequestRouter, type Locate, type RequestRouter } from './route-request.ts'

/** What this replica holds, for clients of one transport. */
export interface LocalSessions {
  readonly get: (id: string) => unknown
  readonly locate: Locate
}

export interface ClusterOptions {
  readonly config: ClusterConfig
  readonly seal: CallerSeal
  readonly tls?: ClusterTls | undefined
  readonly state: FrontState
  readonly sessions: LocalSessions
  readonly channels: LocalSessions
  readonly policyOf: (name: string) => Policy | undefined
  readonly activeCalls: ActiveCalls
  readonly limits: Limits
  readonly log: Log
}

/** This replica among the others: what it sends them, and what it serves for them. */
export interface Cluster {
  readonly address: string
  readonly router: RequestRouter
  /** Admits what other replicas forward. */
  readonly admit: Admit
  /** The number of requests that other replicas serve for this one. */
  readonly forwards: number
  /** Serves these routes for the others, and tells them so. */
  join(routes: HttpRoutes): Promise<void>
  /** Accepts nothing more from the others: they wait until `close`, and then take over what this replica held. */
  retire(): void
  close(): Promise<void>
}

const FLUSH_MS = 100 // for the answers to requests that have waited
const NOT_MEANT = '' // no replica has this name

/** Opens the port for other replicas. */
export const openCluster = async (options: ClusterOptions): Promise<Cluster> => {
  const { config, seal, tls, state, sessions, channels, policyOf, activeCalls, limits, log } = options
  const { members } = state.store
  const listener = await openClusterListener({ config, tls, limits, log })
  const forwarder = new Forwarder({ seal, tls, log })
  const router = createRequestRouter({
    isHere: id => sessions.get(id) !== undefined || channels.get(id) !== undefined,
    locate: async (id, request) => {
      const found = isMessagePath(request.raw) ? undefined : await sessions.locate(id, request)
      return found && found.kind !== 'none' ? found : channels.locate(id, request)
    },
    members,
    forwarder,
    activeCalls,
    bodyBytes: limits.bodyBytes,
    log,
  })
  const stopListening = members.onLeft(replica => forwarder.cut(replica))

  let retirement: Promise<void> | undefined
  let release = (): void => {}
  const self = (): string => (retirement ? NOT_MEANT : members.self)
  const admitNow = createForwardedAdmission({ seal, self, policyOf, log })
  let hasHeld = false
  const admit: Admit = (...args) => {
    if (!retirement) return admitNow(...args)
    hasHeld = true
    return retirement.then(() => admitNow(...args))
  }

  return {
    address: listener.address,
    router,
    admit,
    get forwards() {
      return forwarder.size
    },
    join: async routes => {
      listener.serve(routes)
      await members.announce({ address: listener.address, labels: config.labels })
    },
    retire: () => {
      retirement ??= new Promise(resolve => {
        release = resolve
      })
      forwarder.endStreams()
    },
    close: async () => {
      stopListening()
      release()
      listener.stop()
      if (hasHeld) await sleep(FLUSH_MS)
      await listener.close()
      await forwarder.close()
    },
  }
}
