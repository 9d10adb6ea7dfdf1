import { createConsoleRoutes } from '../admin/console-files.ts'
import { EventFeed } from '../admin/event-feed.ts'
import { createInboundAuth } from '../auth/inbound-auth.ts'
import type { ParkingHome } from '../bridge/parking/parking.ts'
import { type ConfigDifference, changedNames, compareConfigs, hasNoChanges } from '../config/difference.ts'
import { ConfigError } from '../config/problems.ts'
import { DEFAULT_SSE, keepUntilRestart, type Snapshot } from '../config/snapshot.ts'
import { CallerSeal } from '../fronts/cluster/caller-seal.ts'
import { ChannelDirectory } from '../fronts/cluster/channel-directory.ts'
import type { Cluster } from '../fronts/cluster/cluster.ts'
import type { RequestRouter } from '../fronts/cluster/route-request.ts'
import { createServerEndpoint } from '../fronts/cluster/server-calls.ts'
import { ActiveCalls } from '../fronts/http/active-calls.ts'
import { allowCors } from '../fronts/http/cors.ts'
import type { FrontContext } from '../fronts/http/front-request.ts'
import { createRequestGuard } from '../fronts/http/guard.ts'
import { type HttpRoutes, listen } from '../fronts/http/listen.ts'
import { createMcpEndpoint } from '../fronts/http/mcp-endpoint.ts'
import { createRequestReader } from '../fronts/http/read-request.ts'
import { createClientChannels } from '../fronts/http-sse/channels.ts'
import { createHttpSse, createHttpSseRoutes } from '../fronts/http-sse/http-sse.ts'
import { createResourceRoutes } from '../fronts/oauth/resource-routes.ts'
import { createOperatorRoutes } from '../fronts/ops/operator.ts'
import { createActionRoutes } from '../fronts/rest/actions.ts'
import { createStreamableSessions } from '../fronts/streamable/sessions.ts'
import { createStreamable } from '../fronts/streamable/streamable.ts'
import { KeepAlive } from '../fronts/streams/keep-alive.ts'
import { StreamRetention } from '../fronts/streams/stream-retention.ts'
import type { Admit, RequestInfo } from '../protocol/admission.ts'
import type { Dispatch } from '../protocol/exchange.ts'
import type { Policy } from '../protocol/policy.ts'
import { SERVER_STATES, STORE_STATES } from '../protocol/status.ts'
import { ToolPins } from '../safety/tool-pins.ts'
import { isLoopback, originOf } from '../std/host.ts'
import { createFamilyReader, createMetricsReader } from '../telemetry/metrics-reader.ts'
import { createServerCalls } from '../telemetry/server-calls.ts'
import { createVisibleServers } from '../workspace/policy/policy.ts'
import { createAdmin } from './admin.ts'
import { clusterOf, joinCluster, readCertificates, serving } from './cluster.ts'
import { createConfigAdmin, endRemovedWorkspaces } from './config-admin.ts'
import { createConnectAdmin } from './connect-admin.ts'
import { createFlightRecorder } from './flight-recorder.ts'
import { type Gateway, type GatewayStartOptions, stateOf } from './gateway-options.ts'
import { createGatewayStatus } from './gateway-status.ts'
import { drainForStop, handOver } from './hand-over.ts'
import { createInboundOAuth } from './inbound-oauth.ts'
import { createLearntFiles } from './learnt-files.ts'
import { LearntServers } from './learnt-servers.ts'
import { createMemoryServers } from './memory-servers.ts'
import { createOAuthServer } from './oauth-server.ts'
import { openObservability } from './observability.ts'
import { createRequestMetrics } from './request-metrics.ts'
import { createRuntime } from './runtime.ts'
import { createServerOAuth } from './server-oauth.ts'
import { createServerReplicas } from './server-replicas.ts'
import { createSharedConfig } from './shared-config.ts'
import { createSharedLists } from './shared-lists.ts'
import { createStateStatus } from './state-status.ts'
import { createTaskAdmin } from './task-admin.ts'

export type { Gateway } from './gateway-options.ts'

import { createToolUsages } from './tool-usage.ts'

const DRAIN_MS = 5 * 60_000 // the longest time calls to removed servers may take to finish

/** Starts a gateway from a checked configuration. Only this function knows the order of the layers. */
export const startGateway = async (snapshot: Snapshot, options: GatewayStartOptions): Promise<Gateway> => {
  const { log, version = 'unknown', data, insecure, loadNext = noFile, control, history } = options
  const state = stateOf(options)
  const { limits } = snapshot
  const { host } = snapshot.listen
  const calls = createServerCalls()
  let port: number | undefined
  let origin = ''
  const learnt = new LearntServers(data === undefined ? undefined : createLearntFiles(data, log), log)
  await learnt.load(snapshot.servers.values())
  const { store, keys } = state
  const clusterConfig = options.state && clusterOf(snapshot, store, log)
  const tls = await readCertificates(clusterConfig?.tls)
  const seal = new CallerSeal(keys.callers)
  const replicas = clusterConfig && createServerReplicas({ store, seal, tls, log })
  const { onReload = () => {} } = options
  const { flight, access: recorder } = createFlightRecorder(snapshot, {
    current: () => runtime.snapshot,
    localSecret: () => inbound.localSecret,
    loginTokens: () => serverOAuth.tokensInUse(),
    events: () => events,
  })
  const observability = await openObservability(snapshot, {
    version,
    data,
    replica: () => store.members.self,
    serverOf: name => runtime.snapshot.servers.get(name),
    flight,
    log,
  })
  const { writeAudit } = observability
  const events = new EventFeed({ status: () => about.status(), history })
  const sharedConfig = clusterConfig && createSharedConfig({ store, key: keys.ids[0], onReload, log })
  const sharedLists = clusterConfig && createSharedLists(store.shared, log)
  const serverOAuth = await createServerOAuth({
    current: () => runtime.snapshot,
    origin: () => origin,
    ownPort: () => port,
    findIdToken: (...person) => oauthServer.findIdToken(...person),
    ...{ store, writeAudit, log },
  })
  const pins = new ToolPins({ store, writeAudit, log })
  const usages = createToolUsages({ documents: store.shared, isShared: store.isShared, log })
  await usages.load(snapshot.workspaces.values())
  const runtime = createRuntime(snapshot, {
    pins,
    log,
    version,
    data,
    ownPort: () => port,
    calls,
    learnt,
    store: options.state?.store, // without one, sessions with servers end with the gateway
    cursorKeys: keys.cursors,
    parking: { keys: keys.ids, self: () => store.members.self, send: replicas?.sendToHome ?? isGone },
    replicas,
    listChanges: sharedLists,
    usages,
    tasks: { store, log, afterMs: snapshot.tasks?.afterMs },
    oauth: serverOAuth,
  })
  const oauth = createInboundOAuth(snapshot, { port: () => port, log })
  const inbound = await createInboundAuth({
    host,
    isLoopback: isLoopback(host),
    data,
    required: snapshot.auth?.required,
    oauth,
    insecure,
    rate: limits.rate,
    cluster: clusterConfig && { shared: store.shared, replicas: () => serving(store.members) },
    documents: store.shared,
    policyOf: name => runtime.snapshot.policies?.get(name),
    // A session of a removed workspace lives until its calls have ended: they may wait for its answers.
    hasWorkspace: (name, { headers }) => runtime.hasWorkspace(name) || sessions.has(headers['mcp-session-id'], name),
    sealKeys: keys.visitors,
    writeAudit,
    log,
  }).catch(async (error: unknown) => {
    sharedConfig?.close()
    sharedLists?.close()
    await Promise.all([runtime.close(), replicas?.close(), oauth?.close(), observability.close()])
    throw error
  })
  const oauthServer = createOAuthServer({
    snapshot,
    origin: () => origin,
    ownPort: () => port,
    tokens: inbound.apiTokens,
    state,
    writeAudit,
    log,
  })
  if (oauthServer.grants) oauth?.verifier.acceptGrants(oauthServer.grants)
  const admit = observability.watchAdmission(inbound.admit)
  const metrics = createRequestMetrics(runtime.hasServer, log)
  const counted = (dialect: string): Dispatch =>
    observability.watchNotifications(
      dialect,
      metrics.count(dialect, runtime.dispatch, observability.followerFor(dialect)),
    )
  const context: FrontContext = {
    dispatch: counted('stateless'),
    limits,
    log,
    keepAlive: new KeepAlive(limits.keepAliveMs),
    retention: new StreamRetention({ total: limits.totalLogBytes, perOwner: limits.principalLogBytes }),
    activeCalls: new ActiveCalls(limits.principalSessions),
    scopeChallenge: oauth?.resource.scopeChallenge,
  }
  context.keepAlive.onTick(now => context.retention.sweep(now))
  const contextOf = (dialect: string): FrontContext => ({ ...context, dispatch: counted(dialect) })
  const [streamable, httpSse, rest] = [contextOf('streamable'), contextOf('http-sse'), contextOf('rest')]
  const sessions = createStreamableSessions(streamable, state, inbound.tokens)
  const closeOnFailure = async (error: unknown): Promise<never> => {
    context.keepAlive.stop()
    sharedConfig?.close()
    sharedLists?.close()
    await Promise.all([runtime.close(), usages.close(), inbound.close(), cluster?.close(), replicas?.close()])
    await Promise.all([oauth?.close(), oauthServer.close(), observability.close()])
    throw error
  }
  const directory = clusterConfig && new ChannelDirectory(state.store, log)
  const channels = createClientChannels(httpSse, snapshot.sse ?? DEFAULT_SSE, state, directory)
  let cluster: Cluster | undefined
  if (clusterConfig)
    cluster = await joinCluster(clusterConfig, {
      seal,
      tls,
      state,
      sessions,
      channels,
      policyOf: name => runtime.snapshot.policies?.get(name),
      activeCalls: context.activeCalls,
      limits,
      log,
    }).catch(closeOnFailure)
  // Other replicas know this one by another name now: they cannot reach channels of the former name.
  const forgetName = state.store.members.onRenamed(() => channels.endAll('closed'))
  const fronts = { streamable: createStreamable(streamable, sessions), httpSse: createHttpSse(channels) }
  const mcpRoutesFor = (admit: Admit, router?: RequestRouter): HttpRoutes => {
    const handlers = { ...fronts, readRequest: createRequestReader(context, admit, router), router }
    return { ...createMcpEndpoint(context, handlers), ...createHttpSseRoutes(httpSse, handlers) }
  }
  const mcpRoutes = mcpRoutesFor(admit, cluster?.router)
  const readRequest = createRequestReader(context, admit)
  const load = () => ({
    sessions: sessions.size,
    channels: channels.size,
    calls: context.activeCalls.size,
    logBytes: context.retention.bytes,
  })
  const visibleServers = createVisibleServers()
  const workspaces = () => [...runtime.snapshot.workspaces.keys()]
  const shared = {
    readRequest,
    workspaces,
    serversOf: (name: string, policy: Policy | undefined) => {
      const workspace = runtime.snapshot.workspaces.get(name)
      return workspace && visibleServers(workspace, policy)
    },
    visibleTo: (request: RequestInfo) => inbound.accessible(request, workspaces()),
    version,
  }
  const stateStatus = createStateStatus(store, () => (cluster?.forwards ?? 0) + (replicas?.calls ?? 0))
  const about = createGatewayStatus({
    version,
    origin: () => origin,
    runtime,
    load,
    streams: () => context.keepAlive.streamCount,
    state: stateStatus,
  })
  const readFamilies = createFamilyReader(metrics, {
    version,
    states: SERVER_STATES,
    servers: runtime.serverStates,
    workspaces: about.workspaces,
    storeStates: STORE_STATES,
    store: stateStatus,
    forwards: () => ({ ...cluster?.router.counts }),
    calls: calls.rows,
    load: () => ({ ...load(), streams: context.keepAlive.streamCount, tasks: runtime.runningTasks() }),
    ...observability.counts,
  })
  const operator = createOperatorRoutes({
    ...shared,
    state: stateStatus,
    exposeMetrics: snapshot.listen.exposeMetrics,
    admitOperator: inbound.admitOperator,
    servers: runtime.serverStates,
    workspaceStates: about.workspaces,
    differingReplicas: () => sharedConfig?.differing() ?? [],
    scrape: createMetricsReader(readFamilies),
    log,
  })
  const config = createConfigAdmin({
    ...{ load: loadNext, control, key: keys.ids[0], version, data, writeAudit, events },
    current: () => runtime.snapshot,
    sessionsIn: name => sessions.countIn(name) + channels.countIn(name),
  })
  const admin = createAdmin({
    inbound,
    version,
    origin: () => origin,
    publicUrl: snapshot.listen.publicUrl,
    events,
    servers: {
      servers: () => runtime.snapshot.servers,
      statusOf: runtime.serverState,
      toolSizesOf: runtime.toolSizes.ofTools,
      drained: () => context.activeCalls.whenSettled(limits.shutdownMs),
      control: runtime.control,
    },
    plan: async file => compareConfigs(runtime.snapshot, await loadNext(file)),
    status: about.status,
    control,
    history,
    ...createConnectAdmin({
      ...{ data, inbound, oauthServer, serverOAuth, snapshot, events },
      shared: clusterConfig && store.shared,
      current: () => runtime.snapshot,
      origin: () => origin,
      openSessions: () => sessions.size + channels.size,
      isEmbedded: control === undefined,
    }),
    recorder: { version, recorder, replica: () => (clusterConfig ? store.members.self : undefined) },
    config: config.editor,
    memory: createMemoryServers(runtime, inbound),
    tasks: createTaskAdmin(runtime),
    pins: { pins, servers: () => runtime.snapshot.servers, isLasting: state.isLasting },
    writeAudit,
    log,
  })
  const routes: HttpRoutes = {
    ...allowCors({
      ...mcpRoutes,
      ...createActionRoutes(rest, shared),
      ...(oauth && createResourceRoutes(oauth.resource.document)),
    }),
    ...operator,
    ...admin.routes,
    ...createConsoleRoutes({ index: operator['/'], log }),
    ...oauthServer.routes,
    ...serverOAuth.routes({ signIn: oauthServer.signIn, isTokenRequired: () => !inbound.tokens.isValid(undefined) }),
  }
  const guard = createRequestGuard(snapshot.listen)
  const listener = await listen({ listen: snapshot.listen, limits, guard, routes, log }).catch(closeOnFailure)
  port = listener.port
  const clusterRoutes = (admit: Admit): HttpRoutes => ({
    ...mcpRoutesFor(admit),
    ...createServerEndpoint({
      context,
      readRequest: createRequestReader(context, admit),
      dispatchTo: runtime.dispatchTo,
      holds: replicas?.holds ?? (() => false),
      log,
    }),
  })
  await cluster?.join(clusterRoutes(cluster.admit)).catch(async (error: unknown) => {
    await listener.close()
    return closeOnFailure(error)
  })
  sharedConfig?.publish(snapshot)

  origin = originOf(snapshot.listen.host, listener.port)
  observability.exportMetrics(readFamilies)
  writeAudit?.('started', { version, origin, config: snapshot.file, pid: process.pid })
  const swap = (next: Snapshot): ConfigDifference => {
    const before = runtime.snapshot
    const difference = compareConfigs(before, next)
    if (closing) return difference
    const drained = context.activeCalls.whenSettled(DRAIN_MS)
    runtime.swap(keepUntilRestart(before, next), drained)
    config.accept()
    if (!hasNoChanges(difference)) writeAudit?.('config_reloaded', changedNames(difference))
    sharedConfig?.publish(runtime.snapshot)
    void learnt.load(next.servers.values())
    void runtime.probeAll()
    endRemovedWorkspaces(before, runtime.hasWorkspace, [sessions, channels], drained)
    return difference
  }

  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    listener.stop()
    events.close()
    await drainForStop({ activeCalls: context.activeCalls, tasks: runtime, cluster, graceMs: limits.shutdownMs })
    sharedConfig?.close()
    sharedLists?.close()
    forgetName()
    runtime.keepSessions()
    await sessions.stop()
    channels.endAll('shutdown')
    await runtime.close()
    await usages.close()
    await replicas?.close()
    await handOver({ store, sessions, activeCalls: context.activeCalls, graceMs: limits.shutdownMs, log })
    await cluster?.close()
    await listener.close()
    await Promise.all([inbound.close(), oauth?.close(), oauthServer.close()])
    context.keepAlive.stop()
    recorder.close()
    writeAudit?.('stopped', { pid: process.pid })
    await observability.close()
  }

  return {
    port: listener.port,
    origin,
    ready: runtime.probeAll(),
    localSecret: inbound.localSecret,
    idleMs: () => {
      const { sessions, channels, calls } = load()
      const streams = context.keepAlive.streamCount + events.listenerCount // an open console is a client
      return sessions + channels + calls + streams + runtime.runningTasks() > 0 ? 0 : Date.now() - listener.lastRequest
    },
    createConsoleLink: admin.createLink,
    url: about.url,
    status: about.workspaces,
    load,
    swap,
    announceReload: () => sharedConfig?.announceReload(),
    rejectedReload: config.reject,
    close: () => (closing ??= close()),
  }
}

/** There are no other replicas, so the process that has parked a call has ended. */
const isGone: ParkingHome['send'] = (_home, _server, _exchange, onGone) => onGone()

const noFile = (): Promise<Snapshot> => Promise.reject(new ConfigError('this gateway was not started from a file'))
