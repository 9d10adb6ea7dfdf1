import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Admission, RequestInfo } from '../../protocol/admission.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { ServerStatus, StateStatus, WorkspaceStatus } from '../../protocol/status.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { WorkspaceDirectory } from '../http/front-request.ts'
import { isFromThisMachine } from '../http/guard.ts'
import type { HttpRoutes, RequestHandler } from '../http/listen.ts'
import type { ReadRequest, ServeRequest } from '../http/read-request.ts'
import { PRIVATE_HEADERS, rejectUnread, sendJson } from '../http/response.ts'
import { indexJson } from './index-json.ts'

/** Options of the operator's endpoints: liveness, readiness, metrics, and the index of workspaces. */
interface OperatorOptions extends WorkspaceDirectory {
  readonly readRequest: ReadRequest
  readonly exposeMetrics: boolean
  /** Checks the token of a request; undefined if no token is needed. */
  readonly admitOperator: (request: RequestInfo) => Admission | undefined | Promise<Admission>
  readonly version: string
  readonly servers: () => readonly ServerStatus[]
  readonly workspaceStates: () => readonly WorkspaceStatus[]
  readonly differingReplicas: () => readonly string[] // whose configuration is not the one of this replica
  readonly state: () => StateStatus
  readonly scrape: () => Promise<{ readonly type: string; readonly text: string }>
  readonly log: Log
}

/** What a request may see of the whole gateway; `figures` are names and numbers, without texts of servers. */
type OperatorView = { readonly kind: 'all' } | { readonly kind: 'figures' } | (Admission & { kind: 'out' })

type AsyncHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

const HEALTHY = [Buffer.from('{"status":"ok"}')]
const GET_ONLY = rpcError('invalidRequest', 'Method not allowed: use GET')
const HIDDEN: OperatorView = {
  kind: 'out',
  status: 404,
  error: rpcError(
    'invalidRequest',
    'Not Found: figures are shown to callers on this machine and to tokens for every workspace, unless listen.exposeMetrics is true',
  ),
}

export const createOperatorRoutes = (options: OperatorOptions): HttpRoutes & { readonly '/': RequestHandler } => {
  const { readRequest, exposeMetrics, admitOperator, version, servers, state, differingReplicas, scrape, log } = options
  const { workspaces, workspaceStates, serversOf, visibleTo } = options
  let isReady = false

  /** If tokens are required, details need one; otherwise the caller must be on this machine and behind no proxy. */
  const viewOf = async (request: IncomingMessage): Promise<OperatorView> => {
    const admission = await admitOperator(request)
    if (admission?.kind === 'in') return { kind: 'all' }
    if (!admission && (exposeMetrics || isFromThisMachine(request))) return { kind: 'all' }
    if (exposeMetrics) return { kind: 'figures' }
    return admission ?? HIDDEN
  }

  const ready: AsyncHandler = async (request, response) => {
    const states = servers()
    // Ready once every server was tried; a server that is slow to start has a reason, one added later changes nothing.
    isReady ||= states.every(({ state, reason }) => state !== 'connecting' || reason !== undefined)
    const { kind } = await viewOf(request)
    const shown = states.map(describeServer).map(server => (kind === 'all' ? server : { ...server, reason: undefined }))
    const differing = differingReplicas()
    const others = differing.length > 0 ? { replicasWithOtherConfiguration: differing } : {}
    const sizes = kind === 'out' ? [] : workspaceStates().map(describeWorkspace)
    const details =
      kind === 'out' ? {} : { servers: shown, workspaces: sizes, ...describeState(state(), kind === 'all'), ...others }
    const body = { status: isReady ? 'ready' : 'starting', ...details }
    sendJson(response, isReady ? 200 : 503, [Json.of(body).toBytes()], PRIVATE_HEADERS)
  }

  const metrics: AsyncHandler = async (request, response) => {
    const view = await viewOf(request)
    if (view.kind === 'out') return rejectUnread(request, response, view.status, view.error, view.headers)
    const { type, text } = await scrape()
    sendText(response, type, text)
  }

  const index: AsyncHandler = async (raw, response) => {
    const names = await visibleTo(raw)
    const sendIndex: ServeRequest = ({ policy }) => {
      const shown = names.map(name => ({ name, servers: serversOf(name, policy) ?? [] }))
      const headers = { ...PRIVATE_HEADERS, vary: 'accept' } // browsers get the console
      sendJson(response, 200, [indexJson(version, shown).toBytes()], headers)
    }
    readRequest(raw, response, names[0] ?? workspaces()[0] ?? '', sendIndex, false)
  }

  const shown = (handler: AsyncHandler): RequestHandler =>
    getOnly((request, response) => {
      handler(request, response).catch((error: unknown) => {
        log.error({ err: error, path: request.url }, 'page could not be shown')
        if (!response.headersSent) rejectUnread(request, response, 500, rpcError('internal'))
      })
    })

  return {
    '/healthz': getOnly((_request, response) => sendJson(response, 200, HEALTHY, PRIVATE_HEADERS)),
    '/readyz': shown(ready),
    '/metrics': shown(metrics),
    '/': shown(index),
  }
}

const getOnly =
  (handler: RequestHandler): RequestHandler =>
  (request, response, path) => {
    if (request.method === 'GET' || request.method === 'HEAD') return handler(request, response, path)
    rejectUnread(request, response, 405, GET_ONLY, { allow: 'GET, HEAD' })
  }

const describeWorkspace = ({ name, toolList }: WorkspaceStatus) => ({ name, ...toolList })

const describeServer = ({
  name,
  state,
  since,
  reason,
  retryAt,
  revision,
  tools,
  toolSize,
  largestTools,
  pins,
}: ServerStatus) => ({
  name,
  state,
  since: isoTime(since),
  reason,
  retryAt: isoTime(retryAt),
  revision,
  tools,
  toolSize,
  largestTools,
  quarantined: pins?.quarantined,
})

/** A store that is away does not make the gateway unready: its sessions go on. */
const describeState = ({ replicas, forwards, reason, ...store }: StateStatus, isAll: boolean) => ({
  store: { ...store, reason: isAll ? reason : undefined },
  replicas: replicas.map(({ name, address, labels, isSelf }) =>
    isAll ? { name, address, labels, isSelf } : { name, isSelf },
  ),
  forwards,
})

const isoTime = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString()

const sendText = (response: ServerResponse, type: string, text: string): void => {
  response.writeHead(200, { 'content-type': type, 'content-length': Buffer.byteLength(text), ...PRIVATE_HEADERS })
  response.end(text)
}
