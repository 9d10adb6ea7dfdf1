import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { deliver } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { Message } from '../../wire/json-rpc.ts'
import type { FrontContext, FrontRequest } from '../http/front-request.ts'
import type { HttpRoutes } from '../http/listen.ts'
import type { ReadRequest } from '../http/read-request.ts'
import { readQuery } from '../http/request-url.ts'
import { sendError } from '../http/response.ts'
import { serveStateless } from '../stateless/stateless.ts'
import { CALLER_HEADER, type CallerSeal } from './caller-seal.ts'
import { CLOCK_HEADER, REPLICA_HEADER } from './forward-headers.ts'

// Calls to one server through the replica that holds its session or runs its process: requests of MCP 2026-07-28 at the
// cluster port, for a server instead of a workspace. This file is both ends of them.

const PATH = '/.servers/' // no workspace has such a name: `/servers/mcp` is the alias of a workspace
/** The session that the replica must hold, by its pool id. */
const POOL_HEADER = 'dragoman-pool'
/** The gateway itself is the caller. */
const PROBE_HEADER = 'dragoman-probe'
/** The client can poll: the replica says so when the server closes the stream of the call. */
const POLL_HEADER = 'dragoman-polls'
/** The notification by which the replica says so; the entry replica never forwards it. */
const CLOSE_STREAM = 'notifications/dragoman/close_stream'

/**
 * Takes the place of the token's policy in the sealed caller: rules of workspaces and tokens have been applied by now. No policy has
 * such a name, so the caller can be used for nothing but this server, and that of a forwarded request not for a server.
 */
const grantFor = (server: string): string => `\0server ${server}`

/** How such a call is written; `upstreams/replica` sends it. */
export const createServerCallProtocol = (seal: CallerSeal) => ({
  callerHeaders: (server: string, { workspace, principal }: Caller, to: string, now: number): readonly string[] => [
    CALLER_HEADER,
    seal.seal({ workspace, principal, policyName: grantFor(server), address: undefined }, to, now),
  ],
  targetHeaders: (pool: string | undefined, isHealthCheck: boolean, canPoll: boolean): readonly string[] => [
    ...(pool === undefined ? [] : [POOL_HEADER, pool]),
    ...(isHealthCheck ? [PROBE_HEADER, '1'] : []),
    ...(canPoll ? [POLL_HEADER, '1'] : []),
  ],
  pollDelayOf: (message: Message): number | undefined => {
    if (message.kind !== 'notification' || message.method !== CLOSE_STREAM) return undefined
    const retryMs = message.params.get('retryMs')?.asNumber() ?? -1 // a server could write such a notification itself
    return retryMs >= 0 ? retryMs : undefined
  },
  pathOf: (server: string, { workspace, affinity }: Caller): string => {
    const query = new URLSearchParams({ workspace, ...(affinity !== undefined && { affinity }) })
    return `${PATH}${encodeURIComponent(server)}?${query}`
  },
  replicaIn: (headers: IncomingHttpHeaders): string | undefined => single(headers[REPLICA_HEADER]),
  clockIn: (headers: IncomingHttpHeaders): number | undefined => Number(single(headers[CLOCK_HEADER])) || undefined,
})

interface ServerEndpointOptions {
  readonly context: FrontContext
  readonly readRequest: ReadRequest // admits what other replicas have sealed
  /** Sends a request to a server; undefined if it does not exist here. */
  readonly dispatchTo: (server: string) => Dispatch | undefined
  /** Whether this replica holds the session of a pool id, or can claim it. */
  readonly holds: (pool: string) => boolean | Promise<boolean>
  readonly log: Log
}

const MISDIRECTED = 421
const NOT_HERE = rpcError('invalidRequest', 'Misdirected Request: another replica holds this session')
const NOT_GRANTED = rpcError('invalidRequest', 'Forbidden: the caller was not sealed for this server')
const NOT_MODERN = rpcError('invalidRequest', 'A replica sends requests and notifications of 2026-07-28 by POST')

/** Serves the calls that other replicas send to one server. */
export const createServerEndpoint = (options: ServerEndpointOptions): HttpRoutes => {
  const { context, readRequest, dispatchTo, holds, log } = options

  const handle = (raw: IncomingMessage, response: FrontRequest['response'], path: string): void => {
    const workspace = readQuery(raw).get('workspace') ?? ''
    readRequest(raw, response, workspace, (request, incoming) => {
      const server = nameIn(path)
      const dispatch = dispatchTo(server)
      if (request.policyName !== grantFor(server)) return sendError(response, 403, undefined, NOT_GRANTED)
      const isMessage = incoming?.kind === 'request' || incoming?.kind === 'notification'
      if (!isMessage) return sendError(response, 400, undefined, NOT_MODERN)
      if (!dispatch) return sendError(response, MISDIRECTED, undefined, NOT_HERE)
      const serve = (): void => serveStateless({ ...context, dispatch: asCaller(raw, dispatch) }, request, incoming)
      const pool = single(raw.headers[POOL_HEADER])
      const isHere = pool === undefined || holds(pool)
      if (isHere === true) return serve()
      const decide = (isHeld: boolean): void =>
        isHeld ? serve() : sendError(response, MISDIRECTED, undefined, NOT_HERE)
      if (!(isHere instanceof Promise)) return decide(isHere)
      isHere.then(decide).catch((error: unknown) => {
        log.error({ err: error }, 'call of another replica failed')
        response.destroy()
      })
    })
  }

  return { [`${PATH}*`]: handle }
}

/** The caller without the grant. */
const asCaller = (raw: IncomingMessage, dispatch: Dispatch): Dispatch => {
  const about = raw.headers[PROBE_HEADER] === undefined ? {} : ({ isHealthCheck: true } as const)
  const canPoll = raw.headers[POLL_HEADER] !== undefined
  return exchange => {
    const closeStream = (retryMs: number): void =>
      void deliver(exchange.sink, { kind: 'notice', method: CLOSE_STREAM, params: Json.of({ retryMs }) })
    const caller = { ...exchange.caller, policy: undefined, ...about }
    dispatch({ ...exchange, caller, ...(canPoll && { closeStream }) })
  }
}

const nameIn = (path: string): string => {
  try {
    return decodeURIComponent(path.slice(PATH.length))
  } catch {
    return ''
  }
}

const single = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined
