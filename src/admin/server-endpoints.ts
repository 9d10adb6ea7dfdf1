import { suggest } from '../config/problems.ts'
import type { ServerConfig } from '../config/snapshot.ts'
import { RpcFailure } from '../protocol/errors.ts'
import type { ServerPing, ServerStatus } from '../protocol/status.ts'
import type { SizedTool } from '../protocol/tool-size.ts'
import type { ServerAction, ServerActionResult, ServerToolSizes } from './api/servers.ts'
import { type AdminCall, type AdminEndpoint, AdminError } from './endpoints.ts'

export interface ServerEndpointsOptions {
  readonly servers: () => ReadonlyMap<string, ServerConfig> // of the configuration
  readonly statusOf: (server: string) => ServerStatus
  readonly toolSizesOf: (server: string) => readonly SizedTool[]
  /** Until then the calls that run at a server may take to end. */
  readonly drained: () => Promise<void>
  readonly control: {
    setStopped(server: string, isStopped: boolean, drained: Promise<void>): void
    restart(server: string, drained: Promise<void>): void
    probe(server: string): Promise<void>
    /** Rejects with RpcFailure, also after a bounded time. */
    ping(server: string): Promise<ServerPing>
  }
}

const SUMMARIES: Readonly<Record<ServerAction, string>> = {
  start: 'Starts a server that is stopped, or disabled in the configuration, until the gateway restarts',
  stop: 'Stops a server until it is started, or until the gateway restarts; the configuration stays as it is',
  restart: 'Ends the connections and processes of a server, and connects anew',
  retry: 'Probes a server that is not ready at once, instead of waiting for its next try',
}

/** The endpoints with which the owner stops, starts and restarts single servers, and sees what their tools cost. */
export const createServerEndpoints = (options: ServerEndpointsOptions): readonly AdminEndpoint[] => {
  const { servers, statusOf, toolSizesOf, drained, control } = options

  const configOf = (name: string): ServerConfig => {
    const config = servers().get(name)
    if (config) return config
    const hint = suggest(name, servers().keys(), 'the configuration has no servers')
    throw new AdminError(404, `There is no server ${JSON.stringify(name)}: it may have been removed; ${hint}`)
  }

  const ACTIONS: Readonly<Record<ServerAction, (name: string, status: ServerStatus) => void | Promise<void>>> = {
    start: (name, { state, isStopped }) => {
      if (state !== 'disabled' && !isStopped) throw conflict(name, 'is not stopped')
      control.setStopped(name, false, drained())
    },
    stop: (name, { state }) => {
      if (state === 'disabled') throw conflict(name, 'is stopped already')
      control.setStopped(name, true, drained())
    },
    restart: (name, { state }) => {
      if (state === 'disabled') throw conflict(name, 'is stopped: start it instead')
      control.restart(name, drained())
    },
    retry: async (name, { state }) => {
      if (state === 'disabled') throw conflict(name, 'is stopped: start it instead')
      if (state === 'ready') throw conflict(name, 'is ready: there is nothing to try again')
      await control.probe(name)
    },
  }

  const run =
    (action: ServerAction) =>
    async ({ params }: AdminCall): Promise<ServerActionResult> => {
      const { name, kind } = configOf(params.name ?? '')
      if (kind === 'embedded') throw conflict(name, 'belongs to the program that embeds the gateway, which controls it')
      if (kind === 'unavailable') throw conflict(name, 'cannot be served: change its entry in the configuration')
      await ACTIONS[action](name, statusOf(name))
      return { server: statusOf(name) }
    }

  const sizes: AdminEndpoint = {
    method: 'GET',
    path: '/admin/servers/{name}/tool-sizes',
    access: 'owner',
    summary: 'The tools of a server with their sizes in bytes and estimated tokens, the largest first',
    run: ({ params }): ServerToolSizes => ({ tools: toolSizesOf(configOf(params.name ?? '').name) }),
  }

  const ping: AdminEndpoint = {
    method: 'POST',
    path: '/admin/servers/{name}/ping',
    access: 'owner',
    summary: 'Measures how long a server takes to connect and to answer one request',
    run: async ({ params }): Promise<ServerPing> => {
      const { name } = configOf(params.name ?? '')
      return control.ping(name).catch((thrown: unknown) => {
        throw thrown instanceof RpcFailure ? new AdminError(502, thrown.error.message) : thrown
      })
    },
  }

  const actions = (Object.keys(SUMMARIES) as ServerAction[]).map(action => ({
    method: 'POST' as const,
    path: `/admin/servers/{name}/${action}`,
    access: 'owner' as const,
    summary: SUMMARIES[action],
    run: run(action),
  }))
  return [sizes, ping, ...actions]
}

const conflict = (name: string, why: string): AdminError => new AdminError(409, `Server ${JSON.stringify(name)} ${why}`)
