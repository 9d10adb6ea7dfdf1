import { EventFeed } from '../admin/event-feed.ts'
import { createInboundAuth } from '../auth/inbound-auth.ts'
import type { ParkingHome } from '../bridge/parking/parking.ts'
import { type ConfigDifference, changedNames, compareConfigs, hasNoChanges } from '../config/difference.ts'
import { ConfigError } from '../config/problems.ts'
import { DEFAULT_SSE, keepUntilRestart, type Snapshot } from '../config/snapshot.ts'
import { CallerSeal } from '../fronts/cluster/caller-seal.ts'
import { ChannelDirectory } from '../fronts/cluster/channel-directory.ts'
import type { Cluster } from '../fronts/cluster/cluster.ts'
import { createMainEndpoint, createMainRoutes } from '../fronts/cluster/main-process.ts'
import type { RequestRouter } from '../fronts/cluster/route-request.ts'
import { createServerEndpoint } from '../fronts/cluster/server-calls.ts'
import { ActiveCalls } from '../fronts/http/active-calls.ts'
import { allowCors } from '../fronts/http/cors.ts'
import { createClientAddressNoter } from '../fronts/http/forwarded-address.ts'
import type { FrontContext } from '../fronts/http/front-request.ts'
import { createRequestGuard } from '../fronts/http/guard.ts'
import { type HttpRoutes, listen } from '../fronts/http/listen.ts'
import { createMcpEndpoint } from '../fronts/http/mcp-endpoint.ts'
import { createRequestReader } from '../fronts/http/read-request.ts'
import { createClientChannels } from '../fronts/http-sse/channels.ts'
import { createHttpSse, createHttpSseRoutes } from '../fronts/http-sse/http-sse.ts'
import { createResourceRoutes } from '../fronts/oauth/resource-routes.ts'
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
import { clusterOf, joinCluster, readCertificates, serving } from './cluster.ts'
import { endRemovedWorkspaces } from './config-admin.ts'
import { createFlightRecorder } from './flight-recorder.ts'
import { type Gateway, type GatewayStartOptions, stateOf } from './gateway-options.ts'
import { createGatewayStatus } from './gateway-status.ts'
import { drainForStop, handOver } from './hand-over.ts'
import { createInboundOAuth } from './inbound-oauth.ts'
import { createLearntFiles } from './learnt-files.ts'
import { LearntServers } from './learnt-servers.ts'
import { createOAuthServer } from './oauth-server.ts'
import { openObservability } from './observability.ts'
import { createOwnerRoutes } from './owner-routes.ts'
import { createRequestMetrics } from './request-metrics.ts'
import { createRuntime } from './runtime.ts'
import { createServerOAuth } from './server-oauth.ts'
import { createServerReplicas } from './server-replicas.ts'
import { createSharedConfig } from './shared-config.ts'
import { createSharedLists } from './shared-lists.ts'
import { readMetricsOf, startWorkers } from './start-workers.ts'
import { createStateStatus } from './state-status.ts'
import { createToolUsages } from './tool-usage.ts'
import { addLoads, controlAll, createSessionPlace, roleOf, workerCluster } from './worker-role.ts'

export type { Gateway } from './gateway-options.ts'

const DRAIN_MS = 5 * 60_000 // the longest time calls to removed servers may take to finish

/** Starts a gateway from a checked configuration. Only this function knows the order of the layers. */
export const startGateway = async (snapshot: Snapshot, options: GatewayStartOptions): Promise<Gateway> => {
  const { log, version = 'unknown', data, insecure, loadNext = noFile, history } = options
  const given = stateOf(options)
  const role = roleOf(options, options.state?.store, log)
  const { workers, main } = role
  const state = { ...given, homeFor: createSessionPlace(role, given.store, () => runtime.snapshot) }
  const { limits } = snapshot
  const { host } = snapshot.listen
  const calls = createServerCalls()
  let port: number | undefined
  let origin = ''
  const learnt = new LearntServers(data === undefined ? undefined : createLearntFiles(data, log), log)
  await learnt.load(snapshot.servers.values())
  const { store, keys } = state
  const clusterConfig = options.state && (workerCluster(role, snapshot) ?? clusterOf(snapshot, store, log))
  const sharesTokens = clusterConfig !== undefined && !workers && !main // workers use one data directory
  const tls = await readCertificates(clusterConfig?.tls)
  const seal = new CallerSeal(keys.callers)
  const replicas = clusterConfig && createServerReplicas({ store, seal, tls, log })
  const { onReload = () => {} } = options
  const recorder = createFlightRecorder(snapshot, {
    role,
    current: () => runtime.snapshot,
    localSecret: () => inbound.localSecret,
    loginTokens: () => serverOAuth.recentTokens(),
    events: () => events,
  })
  const observability = await openObservability(snapshot, {
    version,
    data,
    replica: () => store.members.self,
    serverOf: name => runtime.snapshot.servers.get(name),
    flight: recorder.flight,
    sendAudit: main && (lines => main.writeAudit(lines)),
    log,
  })
  const { writeAudit } = observability
  const events = new EventFeed({ status: () => status(), history })
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
    isWorker: main !== undefined,
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
    cluster: clusterConfig && {
      shared: store.shared,
      hasTokens: sharesTokens,
      replicas: () => serving(store.members),
    },
    localSecret: main?.facts.localSecret,
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
  const status = () => addLoads(about.status(), workers?.loads ?? [])
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
  const serverControl = controlAll(runtime.control, workers)
  const owner = createOwnerRoutes({
    ...shared,
    ...{ start: options, snapshot, loadNext, runtime, inbound, oauthServer, serverOAuth, context, sessions, channels },
    ...{ about, stateStatus, state, recorder: recorder.shown, pins, events, writeAudit },
    origin: () => origin,
    control: serverControl,
    status: () => status(),
    scrape: createMetricsReader(readFamilies, workers && readMetricsOf(workers)),
    differingReplicas: () => sharedConfig?.differing() ?? [],
    sharedTokens: sharesTokens ? store.shared : undefined,
    hasReplicas: sharesTokens,
  })
  const routes: HttpRoutes = {
    ...allowCors({
      ...mcpRoutes,
      ...createActionRoutes(rest, shared),
      ...(oauth && createResourceRoutes(oauth.resource.document)),
    }),
    ...(main ? createMainRoutes(owner.routes, { seal, members: store.members, log }) : owner.routes),
  }
  const guard = createRequestGuard(snapshot.listen)
  const source = workers ?? main
  const noteClientAddress = createClientAddressNoter(snapshot.listen, log)
  const listening = { listen: snapshot.listen, limits, guard, routes, noteClientAddress, source, log }
  const listener = await listen(listening).catch(closeOnFailure)
  port = listener.port
  const clusterRoutes = (admit: Admit): HttpRoutes => ({
    ...mcpRoutesFor(admit),
    ...(workers && createMainEndpoint(owner.routes, seal, () => store.members.self)),
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
    owner.config.accept()
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
    await workers?.stop(limits.shutdownMs) // first: they use what runs here
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

  const idleMs = (): number => {
    const { sessions, channels, calls } = load()
    const streams = context.keepAlive.streamCount + events.listenerCount // an open console is a client
    const isBusy = sessions + channels + calls + streams + runtime.runningTasks() > 0
    const here = isBusy ? 0 : Date.now() - listener.lastRequest
    return Math.min(here, ...(workers?.loads ?? []).map(other => other.idleMs))
  }
  startWorkers(role, {
    ...{ runtime, members: store.members, localSecret: inbound.localSecret, events, recorder, readFamilies, idleMs },
    load: about.load,
    drained: () => context.activeCalls.whenSettled(limits.shutdownMs),
    addAudit: observability.addAudit,
  })

  return {
    port: listener.port,
    origin,
    ready: runtime.probeAll(),
    localSecret: inbound.localSecret,
    idleMs,
    createConsoleLink: owner.createLink,
    url: about.url,
    status: about.workspaces,
    load,
    swap,
    announceReload: () => sharedConfig?.announceReload(),
    rejectedReload: owner.config.reject,
    close: () => (closing ??= close()),
  }
}

/** There are no other replicas, so the process that has parked a call has ended. */
const isGone: ParkingHome['send'] = (_home, _server, _exchange, onGone) => onGone()

const noFile = (): Promise<Snapshot> => Promise.reject(new ConfigError('this gateway was not started from a file'))
