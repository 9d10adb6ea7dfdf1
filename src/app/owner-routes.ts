import { createConsoleRoutes } from '../admin/console-files.ts'
import type { EventFeed } from '../admin/event-feed.ts'
import type { RecorderEndpointsOptions } from '../admin/recorder-endpoints.ts'
import type { InboundAuth } from '../auth/inbound-auth.ts'
import { compareConfigs } from '../config/difference.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { FrontContext, FrontState, WorkspaceDirectory } from '../fronts/http/front-request.ts'
import type { HttpRoutes } from '../fronts/http/listen.ts'
import type { ReadRequest } from '../fronts/http/read-request.ts'
import { createOperatorRoutes } from '../fronts/ops/operator.ts'
import type { GatewayStatus, StateStatus } from '../protocol/status.ts'
import type { ToolPins } from '../safety/tool-pins.ts'
import type { Shared } from '../stores/state/state-store.ts'
import type { WriteAuditEvent } from '../telemetry/audit-log.ts'
import type { MetricsText } from '../telemetry/metrics-reader.ts'
import { createAdmin } from './admin.ts'
import { type ConfigAdmin, createConfigAdmin } from './config-admin.ts'
import { createConnectAdmin } from './connect-admin.ts'
import type { GatewayStartOptions } from './gateway-options.ts'
import type { createGatewayStatus } from './gateway-status.ts'
import { createMemoryServers } from './memory-servers.ts'
import type { OAuthServer } from './oauth-server.ts'
import type { Runtime, ServerControl } from './runtime.ts'
import type { ServerOAuthParts } from './server-oauth.ts'
import { createTaskAdmin } from './task-admin.ts'

interface OpenClients {
  readonly size: number
  countIn(workspace: string): number
}

interface OwnerRoutesOptions extends WorkspaceDirectory {
  readonly start: GatewayStartOptions
  readonly snapshot: Snapshot // that the gateway was started with
  readonly version: string
  readonly loadNext: NonNullable<GatewayStartOptions['loadNext']>
  readonly origin: () => string
  readonly runtime: Runtime
  readonly control: ServerControl // of single servers
  readonly inbound: InboundAuth
  readonly oauthServer: OAuthServer
  readonly serverOAuth: ServerOAuthParts
  readonly context: FrontContext
  readonly readRequest: ReadRequest
  readonly sessions: OpenClients
  readonly channels: OpenClients
  readonly about: ReturnType<typeof createGatewayStatus>
  readonly status: () => GatewayStatus
  readonly stateStatus: () => StateStatus
  readonly scrape: () => Promise<MetricsText>
  readonly differingReplicas: () => readonly string[]
  readonly state: FrontState
  readonly sharedTokens: Shared | undefined // where all replicas keep their tokens; undefined: in the data directory
  readonly hasReplicas: boolean // other gateways, which have recordings of their own
  readonly recorder: RecorderEndpointsOptions['recorder']
  readonly pins: ToolPins
  readonly events: EventFeed
  readonly writeAudit: WriteAuditEvent | undefined
}

interface OwnerRoutes {
  readonly routes: HttpRoutes
  readonly config: ConfigAdmin
  readonly createLink: ReturnType<typeof createAdmin>['createLink']
}

/** What owners, operators and people in browsers use: figures, the admin API, the console, and the pages of OAuth. */
export const createOwnerRoutes = (options: OwnerRoutesOptions): OwnerRoutes => {
  const { start, snapshot, version, loadNext, origin, runtime, inbound, oauthServer, serverOAuth, about } = options
  const { context, sessions, channels, state, events, pins, writeAudit } = options
  const { data, control, history, log } = start
  const operator = createOperatorRoutes({
    readRequest: options.readRequest,
    workspaces: options.workspaces,
    serversOf: options.serversOf,
    visibleTo: options.visibleTo,
    version,
    state: options.stateStatus,
    exposeMetrics: snapshot.listen.exposeMetrics,
    admitOperator: inbound.admitOperator,
    servers: runtime.serverStates,
    workspaceStates: about.workspaces,
    differingReplicas: options.differingReplicas,
    scrape: options.scrape,
    log,
  })
  const config = createConfigAdmin({
    ...{ load: loadNext, control, key: state.keys.ids[0], version, data, writeAudit, events },
    current: () => runtime.snapshot,
    sessionsIn: name => sessions.countIn(name) + channels.countIn(name),
  })
  const admin = createAdmin({
    inbound,
    version,
    origin,
    publicUrl: snapshot.listen.publicUrl,
    events,
    servers: {
      servers: () => runtime.snapshot.servers,
      statusOf: runtime.serverState,
      toolSizesOf: runtime.toolSizes.ofTools,
      drained: () => context.activeCalls.whenSettled(context.limits.shutdownMs),
      control: options.control,
    },
    plan: async file => compareConfigs(runtime.snapshot, await loadNext(file)),
    status: options.status,
    control,
    history,
    ...createConnectAdmin({
      ...{ data, inbound, oauthServer, serverOAuth, snapshot, events },
      shared: options.sharedTokens,
      current: () => runtime.snapshot,
      origin,
      openSessions: () => sessions.size + channels.size,
      isEmbedded: control === undefined,
    }),
    recorder: {
      version,
      recorder: options.recorder,
      replica: () => (options.hasReplicas ? state.store.members.self : undefined),
    },
    config: config.editor,
    memory: createMemoryServers(runtime, inbound),
    tasks: createTaskAdmin(runtime),
    pins: { pins, servers: () => runtime.snapshot.servers, isLasting: state.isLasting },
    writeAudit,
    log,
  })
  const routes = {
    ...operator,
    ...admin.routes,
    ...createConsoleRoutes({ index: operator['/'], log }),
    ...oauthServer.routes,
    ...serverOAuth.routes({ signIn: oauthServer.signIn, isTokenRequired: () => !inbound.tokens.isValid(undefined) }),
  }
  return { routes, config, createLink: admin.createLink }
}
