import type { IncomingMessage, ServerResponse } from 'node:http'
import { createBridge } from './bridge/bridge.ts'
import type { ServerConfig, Snapshot } from './config/snapshot.ts'
import { Active } from './fronts/active.ts'
import { createDoor } from './fronts/door.ts'
import { createGuard, isLoopback } from './fronts/guard.ts'
import { listen, type Routes } from './fronts/listen.ts'
import { LogShelf } from './fronts/log-shelf.ts'
import { sendJson } from './fronts/reply.ts'
import { Sessions } from './fronts/sessions.ts'
import { createStreamable } from './fronts/streamable.ts'
import { Ticker } from './fronts/ticker.ts'
import type { Admission, House } from './fronts/visit.ts'
import { RpcFailure, rpcError } from './protocol/errors.ts'
import type { Dispatch, Upstream } from './protocol/exchange.ts'
import type { WorkspaceStatus } from './protocol/status.ts'
import { demo } from './servers/demo/demo.ts'
import type { Log } from './telemetry/log.ts'
import { connectRemote } from './upstreams/remote.ts'
import { Json } from './wire/json.ts'
import { createHealth } from './workspace/health.ts'
import { routeTo } from './workspace/route.ts'

interface Options {
  readonly log: Log
  readonly version?: string
  readonly data?: string | undefined // the data directory, there already; without one nothing outlives the process
}

/** A gateway that listens. */
export interface Gateway {
  readonly port: number
  readonly origin: string
  readonly ready: Promise<void> // every server has been tried once
  url(workspace?: string): string
  status(): readonly WorkspaceStatus[]
  /** Figures that must come back to where they were when everybody has left. */
  load(): { readonly sessions: number; readonly calls: number; readonly logBytes: number }
  close(): Promise<void>
}

/** Builds the house from a checked configuration: this is the only place that knows the order of its layers. */
export const startGateway = async (snapshot: Snapshot, { log, version = 'unknown' }: Options): Promise<Gateway> => {
  const { limits } = snapshot
  const bridge = createBridge(limits)
  const servers = new Map([...snapshot.servers].map(([name, config]) => [name, build(config, log, version)]))
  const workspaces = new Map<string, Dispatch>()
  for (const { name, servers: members } of snapshot.workspaces.values())
    workspaces.set(name, routeTo(bridge.wrap(servers.get(members[0] ?? '') ?? unavailable('It has no server')), log))

  const house: House = {
    dispatch: exchange => workspaces.get(exchange.caller.workspace)?.(exchange),
    limits,
    log,
    ticker: new Ticker(limits.keepAliveMs),
    shelf: new LogShelf(limits.totalLogBytes),
    active: new Active(),
  }
  house.ticker.each(now => house.shelf.sweep(now))
  const sessions = new Sessions(house)

  // Without authentication a caller is somebody we know only where nobody else can come in.
  const admission: Admission = { kind: 'in', principal: isLoopback(snapshot.listen.host) ? 'local' : undefined }
  const door = createDoor(house, {
    hasWorkspace: name => workspaces.has(name),
    admit: () => admission,
    streamable: createStreamable(house, sessions),
  })
  const routes: Routes = { '/mcp': door, '/mcp/*': door, '/healthz': answerHealthy }
  const listener = await listen({ listen: snapshot.listen, limits, guard: createGuard(snapshot.listen), routes, log })

  const origin = originOf(snapshot.listen.host, listener.port)
  const url = (workspace = 'default') =>
    workspace === 'default' ? `${origin}/mcp` : `${origin}/mcp/${encodeURIComponent(workspace)}`
  const health = createHealth([...snapshot.servers.values()], servers)

  let closing: Promise<void> | undefined
  const close = async (): Promise<void> => {
    listener.stop()
    await house.active.drain(limits.shutdownMs)
    sessions.endAll()
    bridge.close()
    await Promise.all([...servers.values()].map(server => server.close()))
    await listener.close()
    house.ticker.stop()
  }

  return {
    port: listener.port,
    origin,
    ready: health.tryAll(),
    url,
    status: () =>
      [...snapshot.workspaces.values()].map(({ name, servers: members }) => ({
        name,
        url: url(name),
        servers: members.map(member => health.of(member)),
      })),
    load: () => ({ sessions: sessions.size, calls: house.active.size, logBytes: house.shelf.used }),
    close: () => (closing ??= close()),
  }
}

const build = (config: ServerConfig, log: Log, version: string): Upstream => {
  if (config.disabled) return unavailable(`Server "${config.name}" is disabled in the configuration`)
  switch (config.kind) {
    case 'remote':
      return connectRemote(config, { log, identity: { name: 'dragoman', version } })
    case 'builtin':
      return demo(version)
    case 'unavailable':
      return unavailable(`Server "${config.name}" cannot be served: ${config.reason}`)
  }
}

const unavailable = (message: string): Upstream => ({
  open: () => Promise.reject(new RpcFailure(rpcError('internal', message, Json.of({ reason: 'unavailable' })))),
  close: () => Promise.resolve(),
})

const HEALTHY = [Buffer.from('{"status":"ok"}')]

const answerHealthy = (_request: IncomingMessage, response: ServerResponse): void => sendJson(response, 200, HEALTHY)

const originOf = (host: string, port: number): string => `http://${host.includes(':') ? `[${host}]` : host}:${port}`
