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
import { createRequestRouter, type Locate, type RequestRouter } from './route-request.ts'
import { findSuccessor } from './successor.ts'

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
  /**
   * Accepts nothing more from the others: they wait until `close`, and then take over what this replica held. Requests of
   * clients go to the others from now on.
   */
  retire(): void
  close(): Promise<void>
}

const CUT_MS = 500 // for the last answers of a replica that has left by a planned stop
const QUIET_MS = 100
const UNTIL_QUIET_MS = 2_000
const NOT_MEANT = '' // no replica has this name

/** Opens the port for other replicas. */
export const openCluster = async (options: ClusterOptions): Promise<Cluster> => {
  const { config, seal, tls, state, sessions, channels, policyOf, activeCalls, limits, log } = options
  const { members } = state.store
  const listener = await openClusterListener({ config, tls, limits, log })
  const { Forwarder } = await import('./forwarder.ts') // with undici, which a single gateway may never need
  const forwarder = new Forwarder({ seal, tls, log })
  let retirement: Promise<void> | undefined
  let release = (): void => {}
  const router = createRequestRouter({
    isHere: id => sessions.get(id) !== undefined || channels.get(id) !== undefined,
    locate: async (id, request) => {
      const found = isMessagePath(request.raw) ? undefined : await sessions.locate(id, request)
      return found && found.kind !== 'none' ? found : channels.locate(id, request)
    },
    homeFor: state.homeFor,
    successor: () => (retirement ? findSuccessor(members) : undefined),
    members,
    forwarder,
    activeCalls,
    bodyBytes: limits.bodyBytes,
    log,
  })
  const stopListening = members.onLeft(replica => void setTimeout(() => forwarder.cut(replica), CUT_MS).unref())

  const self = (): string => (retirement ? NOT_MEANT : members.self)
  const admitNow = createForwardedAdmission({ seal, self, policyOf, log })
  const admit: Admit = (...args) => (retirement ? retirement.then(() => admitNow(...args)) : admitNow(...args))

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
      if (retirement && members.all().length > 1) await untilQuiet(() => listener.lastRequest)
      listener.stop()
      await listener.close()
      await forwarder.close()
    },
  }
}

/** Waits for the requests under way: an answer tells their replicas to send nothing more, a closed connection loses them. */
const untilQuiet = async (lastRequest: () => number): Promise<void> => {
  const end = Date.now() + UNTIL_QUIET_MS
  do {
    await sleep(QUIET_MS)
    await new Promise(setImmediate) // a late timer runs before what has arrived is read
  } while (Date.now() - lastRequest() < QUIET_MS && Date.now() < end)
}
