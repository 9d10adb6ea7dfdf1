import { networkInterfaces } from 'node:os'
import type { ClusterConfig, Limits } from '../../config/snapshot.ts'
import type { Admit } from '../../protocol/admission.ts'
import { rpcError } from '../../protocol/errors.ts'
import { absentPolicy, type Policy } from '../../protocol/policy.ts'
import type { Log } from '../../telemetry/log.ts'
import { type HttpListener, type HttpRoutes, listen, routeFinder } from '../http/listen.ts'
import { rejectUnread } from '../http/response.ts'
import { CALLER_HEADER, type CallerSeal } from './caller-seal.ts'
import { type ClusterTls, clusterAddress, clusterListen } from './cluster-address.ts'
import { CLOCK_HEADER, REPLICA_HEADER } from './forward-headers.ts'

/** The port on which the replicas of a cluster reach each other. */
export interface ClusterListener {
  readonly address: string // the URL for the others
  /** Time of the last request. */
  readonly lastRequest: number
  /** Serves these routes from now on. */
  serve(routes: HttpRoutes): void
  stop(): void
  close(): Promise<void>
}

interface ClusterListenerOptions {
  readonly config: ClusterConfig
  readonly tls: ClusterTls | undefined
  readonly limits: Limits
  readonly log: Log
}

const MAX_HEADER_BYTES = 64 * 1024 // the headers of a client, and what a replica adds
const NOT_READY = rpcError('internal', 'This replica is starting')

/** Opens the port. It is of no use to clients: every request needs a caller that another replica has sealed. */
export const openClusterListener = async (options: ClusterListenerOptions): Promise<ClusterListener> => {
  const { config, tls, limits, log } = options
  let find: ReturnType<typeof routeFinder> = () => (request, response) =>
    rejectUnread(request, response, 503, NOT_READY)
  const place = clusterListen(config, networkInterfaces())
  const listener: HttpListener = await listen({
    listen: place,
    limits,
    guard: () => undefined, // no browser can send the header that every request needs
    routes: {
      '/*': (request, response, path) => {
        const handler = find(path)
        if (handler) handler(request, response, path)
        else rejectUnread(request, response, 404, rpcError('invalidRequest', `Not Found: ${path}; clients use /mcp`))
      },
    },
    tls,
    maxHeaderBytes: MAX_HEADER_BYTES,
    log,
  })
  const address = clusterAddress(config, { host: place.host, port: listener.port }, networkInterfaces())
  return {
    address,
    get lastRequest() {
      return listener.lastRequest
    },
    serve: routes => {
      find = routeFinder(routes)
    },
    stop: listener.stop,
    close: listener.close,
  }
}

interface ForwardedAdmissionOptions {
  readonly seal: CallerSeal
  readonly self: () => string // the name of this replica
  readonly policyOf: (name: string) => Policy | undefined
  readonly log: Log
}

const UNSEALED = rpcError('invalidRequest', 'Forbidden: this port is for the replicas of the gateway; clients use /mcp')
const MISDIRECTED = rpcError('invalidRequest', 'Misdirected Request: another replica is meant')
const EXPIRED = rpcError('invalidRequest', 'The forwarded request has expired; it may be sent again')

/** Admits what other replicas forward: they have authenticated its caller. */
export const createForwardedAdmission = (options: ForwardedAdmissionOptions): Admit => {
  const { seal, self, policyOf, log } = options
  return ({ headers, socket }, workspace, response) => {
    const sealed = headers[CALLER_HEADER]
    const reading = typeof sealed === 'string' ? seal.open(sealed, self(), Date.now()) : ({ kind: 'invalid' } as const)
    if (reading.kind === 'misdirected') return { kind: 'out', status: 421, error: MISDIRECTED }
    if (reading.kind === 'expired')
      return { kind: 'out', status: 403, error: EXPIRED, headers: { [CLOCK_HEADER]: String(Date.now()) } }
    if (reading.kind === 'invalid' || reading.caller.workspace !== workspace) {
      log.warn({ security: true, address: socket.remoteAddress }, 'request without a valid caller on the cluster port')
      return { kind: 'out', status: 403, error: UNSEALED }
    }
    response?.setHeader(REPLICA_HEADER, self())
    const { principal, policyName, address, scopes, expires, token } = reading.caller
    const policy = policyName === undefined ? undefined : (policyOf(policyName) ?? absentPolicy(policyName))
    return { kind: 'in', principal, policy, policyName, address, scopes, expires, token }
  }
}
