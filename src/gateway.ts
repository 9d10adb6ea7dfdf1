import { createInbound } from './auth/inbound.ts'
import { createBridge } from './bridge/bridge.ts'
import type { ServerConfig, Snapshot } from './config/snapshot.ts'
import { createActions } from './fronts/actions.ts'
import { Active } from './fronts/active.ts'
import { createChannelDoors } from './fronts/channel-doors.ts'
import { Channels } from './fronts/channels.ts'
import { openToPages } from './fronts/cors.ts'
import { createDoor } from './fronts/door.ts'
import { createEntrance } from './fronts/entrance.ts'
import { createGuard, isLoopback } from './fronts/guard.ts'
import { createHttpSse } from './fronts/http-sse.ts'
import { listen, type Routes } from './fronts/listen.ts'
import { LogShelf } from './fronts/log-shelf.ts'
import { createOperator } from './fronts/operator.ts'
import { Sessions } from './fronts/sessions.ts'
import { createStreamable } from './fronts/streamable.ts'
import { Ticker } from './fronts/ticker.ts'
import type { House } from './fronts/visit.ts'
import type { Knock } from './protocol/admission.ts'
import { RpcFailure, rpcError } from './protocol/errors.ts'
import type { Dispatch, Frame, Upstream } from './protocol/exchange.ts'
import { methodRow } from './protocol/methods.ts'
import type { WorkspaceStatus } from './protocol/status.ts'
import { demo } from './servers/demo/demo.ts'
import { files } from './servers/files/files.ts'
import type { Log } from './telemetry/log.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { createScrape } from './telemetry/prometheus.ts'
import { connectProcess } from './upstreams/process.ts'
import { Starts } from './upstreams/process-starts.ts'
import { connectRemote } from './upstreams/remote.ts'
import { Json } from './wire/json.ts'
import { createHealth } from './workspace/health.ts'
import { routeTo } from './workspace/route.ts'

interface Options {
  readonly log: Log
  readonly version?: string
  readonly insecure?: boolean | undefined // everybody may come in, and nobody is known
  readonly data?: string | undefined // the data directory, there already; without one nothing outlives the process
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
  close(): Promise<void>
}

/** Builds the house from a checked configuration: this is the only place that knows the order of its layers. */
export const startGateway = async (snapshot: Snapshot, options: Options): Promise<Gateway> => {
  const { log, version = 'unknown', data, insecure } = options
  const { limits } = snapshot
  const { host } = snapshot.listen
  const inbound = await createInbound({
    host,
    isLoopback: isLoopback(host),
    data,
    required: snapshot.auth?.required,
    insecure,
    rate: limits.rate,
    log,
  })
  const bridge = createBridge(limits)
  const starts = new Starts(limits.concurrentStarts)
  const servers = new Map([...snapshot.servers].map(([name, config]) => [name, build(config, log, version, starts)]))
  const workspaces = new Map<string, Dispatch>()
  for (const { name, servers: members } of snapshot.workspaces.values()) {
    const [server = ''] = members
    workspaces.set(name, routeTo(server, bridge.wrap(servers.get(server) ?? unavailable('It has no server')), log))
  }

  const metrics = createMetrics({
    isKnown: method => methodRow(method) !== undefined,
    isStanding,
    blame: blameIn(servers),
  })
  const dispatch: Dispatch = exchange => workspaces.get(exchange.caller.workspace)?.(exchange)
  const house: House = {
    dispatch: metrics.count('stateless', dispatch),
    limits,
    log,
    ticker: new Ticker(limits.keepAliveMs),
    shelf: new LogShelf(limits.totalLogBytes),
    active: new Active(),
  }
  house.ticker.each(now => house.shelf.sweep(now))
  const houseOf = (dialect: string): House => ({ ...house, dispatch: metrics.count(dialect, dispatch) })
  const [streamable, httpSse, rest] = [houseOf('streamable'), houseOf('http-sse'), houseOf('rest')]
  const sessions = new Sessions(streamable)
  const channels = new Channels(httpSse, snapshot.sse?.endpoint ?? 'relative')

  const ways = {
    hasWorkspace: (name: string) => workspaces.has(name),
    enter: createEntrance(house, inbound.admit),
    streamable: createStreamable(streamable, sessions),
    httpSse: createHttpSse(httpSse, channels),
  }
  const door = createDoor(house, ways)
  const doors: Routes = { '/mcp': door, '/mcp/*': door, ...createChannelDoors(httpSse, ways) }
  const health = createHealth([...snapshot.servers.values()], servers, Json.of({ name: 'dragoman', version }))
  const load = () => ({
    sessions: sessions.size,
    channels: channels.size,
    calls: house.active.size,
    logBytes: house.shelf.used,
  })
  const open = {
    admit: inbound.admit,
    workspaces: new Map([...snapshot.workspaces].map(([name, { servers: members }]) => [name, members])),
    visible: (knock: Knock) => [...workspaces.keys()].filter(name => inbound.sees(knock, name)),
    version,
  }
  const states = () => [...snapshot.servers.keys()].map(health.of)
  const operator = createOperator({
    ...open,
    isOpen: isLoopback(host) || snapshot.listen.exposeMetrics,
    servers: states,
    scrape: createScrape(metrics, {
      version,
      servers: states,
      load: () => ({ ...load(), streams: house.ticker.streams }),
    }),
    log,
  })
  const routes: Routes = { ...openToPages({ ...doors, ...createActions(rest, open) }), ...operator }
  const listener = await listen({ listen: snapshot.listen, limits, guard: createGuard(snapshot.listen), routes, log })

  const origin = originOf(snapshot.listen.host, listener.port)
  const url = (workspace = 'default') =>
    workspace === 'default' ? `${origin}/mcp` : `${origin}/mcp/${encodeURIComponent(workspace)}`

  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    listener.stop()
    await house.active.drain(limits.shutdownMs)
    sessions.endAll()
    channels.endAll('shutdown')
    bridge.close()
    await Promise.allSettled([...servers.values()].map(server => server.close()))
    await listener.close()
    await inbound.close()
    house.ticker.stop()
  }

  return {
    port: listener.port,
    origin,
    ready: health.tryAll(),
    localSecret: inbound.localSecret,
    idleMs: () => {
      const { sessions: open, channels: more, calls } = load()
      return open + more + calls + house.ticker.streams > 0 ? 0 : Date.now() - listener.lastRequest
    },
    url,
    status: () =>
      [...snapshot.workspaces.values()].map(({ name, servers: members }) => ({
        name,
        url: url(name),
        servers: members.map(member => health.of(member)),
      })),
    load,
    close: () => (closing ??= close()),
  }
}

const build = (config: ServerConfig, log: Log, version: string, starts: Starts): Upstream => {
  if (config.disabled) return unavailable(`Server "${config.name}" is disabled in the configuration`)
  switch (config.kind) {
    case 'remote':
      return connectRemote(config, { log, identity: { name: 'dragoman', version } })
    case 'process':
      return connectProcess(config, {
        log: log.child({ server: config.name }),
        identity: { name: 'dragoman', version },
        starts,
      })
    case 'builtin':
      return config.builtin === 'files' ? files({ root: config.root, version }) : demo(version)
    case 'unavailable':
      return unavailable(`Server "${config.name}" cannot be served: ${config.reason}`)
  }
}

const unavailable = (message: string): Upstream => ({
  open: () => Promise.reject(new RpcFailure(rpcError('internal', message, Json.of({ reason: 'unavailable' })))),
  close: () => Promise.resolve(),
})

const isStanding = (method: string): boolean => method === 'subscriptions/listen'

/** Reads off whose fault a failure was; an error of a server's own making may claim anything. */
const blameIn = (servers: ReadonlyMap<string, Upstream>) => (frame: Frame) => {
  const data = frame.kind === 'failure' ? frame.error.data : undefined
  const [server, reason] = [data?.get('upstream')?.asString() ?? '', data?.get('reason')?.asString() ?? '']
  return servers.has(server) && /^[a-z_]{1,40}$/.test(reason) ? { server, reason } : undefined
}

const originOf = (host: string, port: number): string => `http://${host.includes(':') ? `[${host}]` : host}:${port}`
