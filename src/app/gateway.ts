import { createInboundAuth } from '../auth/inbound-auth.ts'
import { hashSecret } from '../auth/token.ts'
import { type ConfigDifference, compareConfigs } from '../config/difference.ts'
import { ConfigError } from '../config/problems.ts'
import { DEFAULT_SSE, type Snapshot } from '../config/snapshot.ts'
import { ActiveCalls } from '../fronts/http/active-calls.ts'
import { allowCors } from '../fronts/http/cors.ts'
import type { FrontContext } from '../fronts/http/front-request.ts'
import { createRequestGuard, isLoopback } from '../fronts/http/guard.ts'
import { type HttpRoutes, listen } from '../fronts/http/listen.ts'
import { createMcpEndpoint } from '../fronts/http/mcp-endpoint.ts'
import { createRequestReader } from '../fronts/http/read-request.ts'
import { SseChannels } from '../fronts/http-sse/channels.ts'
import { createHttpSse, createHttpSseRoutes } from '../fronts/http-sse/http-sse.ts'
import { createAdminRoutes } from '../fronts/ops/admin.ts'
import { createOperatorRoutes } from '../fronts/ops/operator.ts'
import { createActionRoutes } from '../fronts/rest/actions.ts'
import { StreamableSessions } from '../fronts/streamable/sessions.ts'
import { createStreamable } from '../fronts/streamable/streamable.ts'
import { KeepAlive } from '../fronts/streams/keep-alive.ts'
import { StreamRetention } from '../fronts/streams/stream-retention.ts'
import type { RequestInfo } from '../protocol/admission.ts'
import { GatewayFault } from '../protocol/deliver.ts'
import type { Dispatch, Exchange, Frame } from '../protocol/exchange.ts'
import { methodRow } from '../protocol/methods.ts'
import type { Policy } from '../protocol/policy.ts'
import { SERVER_STATES, type WorkspaceStatus } from '../protocol/status.ts'
import type { Log } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createScrape } from '../telemetry/prometheus.ts'
import { logRequests } from '../telemetry/request-log.ts'
import { createServerCalls } from '../telemetry/server-calls.ts'
import { createVisibleServers } from '../workspace/policy/visible-servers.ts'
import { createRuntime } from './runtime.ts'

interface Options {
  readonly log: Log
  readonly version?: string
  readonly insecure?: boolean | undefined // everybody may come in, and nobody is known
  readonly data?: string | undefined // the data directory, there already; without one nothing outlives the process
  /** Reads a configuration file, or the gateway's own; without it nobody can ask what one would change. */
  readonly loadNext?: ((file: string | undefined) => Promise<Snapshot>) | undefined
}

/** A gateway that listens. */
export interface Gateway {
  readonly port: number
  readonly origin: string
  readonly ready: Promise<void> // every server has been tried once
  readonly localSecret: string // a token for programs of the same user on this machine, good while the gateway runs
  url(workspace?: string): string
  status(): readonly WorkspaceStatus[]
  /** Figures that must come back to where they were when everybody has left. */
  load(): { readonly sessions: number; readonly channels: number; readonly calls: number; readonly logBytes: number }
  /** How long nobody has been here: no request, and no session, channel or stream open. */
  idleMs(): number
  /** Goes over to another configuration without a restart, as far as that goes; says what is different. */
  swap(next: Snapshot): ConfigDifference
  close(): Promise<void>
}

const DRAIN_MS = 5 * 60_000 // for calls to servers that are no longer there

/** Builds the house from a checked configuration: this is the only place that knows the order of its layers. */
export const startGateway = async (snapshot: Snapshot, options: Options): Promise<Gateway> => {
  const { log, version = 'unknown', data, insecure, loadNext = noFile } = options
  const { limits } = snapshot
  const { host } = snapshot.listen
  const calls = createServerCalls()
  let port: number | undefined
  const estate = createRuntime(snapshot, { log, version, data, ownPort: () => port, calls })
  const inbound = await createInboundAuth({
    host,
    isLoopback: isLoopback(host),
    data,
    required: snapshot.auth?.required,
    insecure,
    rate: limits.rate,
    policyOf: name => estate.snapshot.policies?.get(name),
    // A session of a workspace that was taken away lives until its calls are over: they may wait for its answers.
    hasWorkspace: (name, { headers }) => estate.hasWorkspace(name) || sessions.has(headers['mcp-session-id'], name),
    log,
  }).catch(async (error: unknown) => {
    await estate.close()
    throw error
  })
  const metrics = createMetrics({
    isKnown: method => methodRow(method) !== undefined,
    isStanding,
    blame: blameIn(estate.hasServer, log),
  })
  const counted = (dialect: string): Dispatch => {
    const count = metrics.count(dialect, estate.dispatch)
    return log.isLevelEnabled?.('debug') ? logRequests<Frame, Exchange>(log, dialect, count) : count
  }
  const house: FrontContext = {
    dispatch: counted('stateless'),
    limits,
    log,
    keepAlive: new KeepAlive(limits.keepAliveMs),
    retention: new StreamRetention({ total: limits.totalLogBytes, perOwner: limits.principalLogBytes }),
    activeCalls: new ActiveCalls(),
  }
  house.keepAlive.onTick(now => house.retention.sweep(now))
  const houseOf = (dialect: string): FrontContext => ({ ...house, dispatch: counted(dialect) })
  const [streamable, httpSse, rest] = [houseOf('streamable'), houseOf('http-sse'), houseOf('rest')]
  const sessions = new StreamableSessions(streamable, inbound.onRevoked)
  const channels = new SseChannels(httpSse, snapshot.sse ?? DEFAULT_SSE)

  const ways = {
    readRequest: createRequestReader(house, inbound.admit),
    streamable: createStreamable(streamable, sessions),
    httpSse: createHttpSse(httpSse, channels),
  }
  const doors: HttpRoutes = { ...createMcpEndpoint(house, ways), ...createHttpSseRoutes(httpSse, ways) }
  const load = () => ({
    sessions: sessions.size,
    channels: channels.size,
    calls: house.activeCalls.size,
    logBytes: house.retention.bytes,
  })
  const visibleServers = createVisibleServers()
  const workspaces = () => [...estate.snapshot.workspaces.keys()]
  const open = {
    readRequest: ways.readRequest,
    workspaces,
    serversOf: (name: string, policy: Policy | undefined) => {
      const workspace = estate.snapshot.workspaces.get(name)
      return workspace && visibleServers(workspace, policy)
    },
    visibleTo: (knock: RequestInfo) => workspaces().filter(name => inbound.canAccess(knock, name)),
    version,
  }
  const operator = createOperatorRoutes({
    ...open,
    exposeMetrics: snapshot.listen.exposeMetrics,
    admitOperator: inbound.admitOperator,
    servers: estate.serverStates,
    scrape: createScrape(metrics, {
      version,
      states: SERVER_STATES,
      servers: estate.serverStates,
      calls: calls.rows,
      load: () => ({ ...load(), streams: house.keepAlive.streamCount }),
    }),
    log,
  })
  const admin = createAdminRoutes({
    isOwner: secret => hashSecret(secret) === hashSecret(inbound.localSecret),
    plan: async file => compareConfigs(estate.snapshot, await loadNext(file)),
    log,
  })
  const routes: HttpRoutes = { ...allowCors({ ...doors, ...createActionRoutes(rest, open) }), ...operator, ...admin }
  const guard = createRequestGuard(snapshot.listen)
  const listener = await listen({ listen: snapshot.listen, limits, guard, routes, log }).catch(
    async (error: unknown) => {
      house.keepAlive.stop()
      await Promise.all([estate.close(), inbound.close()])
      throw error
    },
  )

  port = listener.port
  const origin = originOf(snapshot.listen.host, listener.port)
  const url = (workspace = 'default') =>
    workspace === 'default' ? `${origin}/mcp` : `${origin}/mcp/${encodeURIComponent(workspace)}`

  const swap = (next: Snapshot): ConfigDifference => {
    const before = estate.snapshot
    const difference = compareConfigs(before, next)
    if (closing) return difference
    const drained = house.activeCalls.whenSettled(DRAIN_MS)
    const { listen, auth, sse, limits } = before // what is built once
    estate.swap({ ...next, listen, auth, sse, limits }, drained)
    void estate.probeAll()
    const gone = [...before.workspaces.keys()].filter(name => !estate.hasWorkspace(name))
    const endIn = (isAll: boolean): void => {
      for (const name of gone.filter(name => !estate.hasWorkspace(name))) {
        sessions.endIn(name, isAll)
        channels.endIn(name, isAll)
      }
    }
    endIn(false)
    void drained.then(() => endIn(true))
    return difference
  }

  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    listener.stop()
    await house.activeCalls.drain(limits.shutdownMs)
    sessions.endAll()
    channels.endAll('shutdown')
    await estate.close()
    await listener.close()
    await inbound.close()
    house.keepAlive.stop()
  }

  return {
    port: listener.port,
    origin,
    ready: estate.probeAll(),
    localSecret: inbound.localSecret,
    idleMs: () => {
      const { sessions: open, channels: more, calls } = load()
      return open + more + calls + house.keepAlive.streamCount > 0 ? 0 : Date.now() - listener.lastRequest
    },
    url,
    status: () =>
      [...estate.snapshot.workspaces.values()].map(({ name, servers: members }) => ({
        name,
        url: url(name),
        servers: members.map(estate.serverState),
      })),
    load,
    swap,
    close: () => (closing ??= close()),
  }
}

const noFile = (): Promise<Snapshot> => Promise.reject(new ConfigError('this gateway was not started from a file'))

const isStanding = (method: string): boolean => method === 'subscriptions/listen'

/** Reads off whose fault a failure was; an error of a server's own making may claim anything. Logs the gateway's own. */
const blameIn = (isServer: (name: string) => boolean, log: Log) => (frame: Frame) => {
  if (frame.kind === 'failure' && frame.error instanceof GatewayFault)
    log.error({ err: frame.error.cause }, 'a call failed inside the gateway')
  const data = frame.kind === 'failure' ? frame.error.data : undefined
  const [server, reason] = [data?.get('upstream')?.asString() ?? '', data?.get('reason')?.asString() ?? '']
  return isServer(server) && /^[a-z_]{1,40}$/.test(reason) ? { server, reason } : undefined
}

const originOf = (host: string, port: number): string => `http://${host.includes(':') ? `[${host}]` : host}:${port}`
