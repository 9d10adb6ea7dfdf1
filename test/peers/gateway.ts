import { mkdtempSync, rmSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { endPrograms, startServe } from '../e2e/cli/program.ts'

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const SCRIPTED = fileURLToPath(new URL('servers/scripted.ts', import.meta.url))

/** How a client reaches the gateway. */
export type ClientTransport = 'streamable' | 'sse' | 'stdio'

/** A running gateway, with a folder that goes when it stops. */
export interface Gateway {
  readonly folder: string
  url(workspace: string): string
  /** What a client program is told to connect to: a URL, or for stdio the command line as JSON. */
  target(workspace: string, transport: ClientTransport): string
  stop(): Promise<void>
}

/** What a workspace of a gateway holds. */
export interface GatewayConfig {
  readonly mcpServers: Readonly<Record<string, object>>
  readonly workspaces: Readonly<Record<string, object>>
}

/** Starts the built gateway with a configuration and a data directory of its own. */
export const startGateway = async (config: (folder: string) => GatewayConfig): Promise<Gateway> => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-peers-'))
  const clear = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  const abandon = (): void => {
    void endPrograms() // an exit waits for nothing
    clear()
  }
  process.once('exit', abandon)
  const file = join(folder, 'config.json')
  const data = join(folder, 'data')
  await writeFile(file, JSON.stringify(config(folder)))
  const program = await startServe(['--config', file], { DRAGOMAN_DATA: data })
  const url = (workspace: string): string => `${program.origin}/mcp/${workspace}`
  return {
    folder,
    url,
    target: (workspace, transport) => {
      if (transport === 'stdio')
        return JSON.stringify([process.execPath, MAIN, 'stdio', '--workspace', workspace, '--data', data])
      return transport === 'sse' ? `${url(workspace)}/sse` : url(workspace)
    },
    stop: async () => {
      program.signal('SIGTERM')
      const kill = setTimeout(() => program.signal('SIGKILL'), 10_000)
      await program.ended
      clearTimeout(kill)
      process.off('exit', abandon)
      clear()
    },
  }
}

/** The workspaces every client is tried with. */
export type ClientWorkspace = keyof typeof CLIENT_WORKSPACES

/**
 * `legacy`: one server that pages, of 2025-11-25. `modern`: the demo server of 2026-07-28 beside another server.
 * `budgeted`: a server of each era, whose tools a budget hides.
 */
export const CLIENT_WORKSPACES = {
  legacy: { servers: ['scripted'] },
  modern: { servers: ['demo', 'extra'], names: 'plain' },
  budgeted: { servers: ['demo', 'scripted'], budget: { tokens: 1000, favourites: [] } },
} as const

/** Starts a gateway with the servers that client programs call. */
export const startClientGateway = (): Promise<Gateway> =>
  startGateway(folder => ({
    mcpServers: {
      demo: { builtin: 'demo' },
      scripted: scripted(folder, 'all'),
      extra: scripted(folder, 'extra'),
    },
    workspaces: CLIENT_WORKSPACES,
  }))

const scripted = (folder: string, offer: 'all' | 'extra'): object => ({
  command: process.execPath,
  args: ['--import', import.meta.resolve('tsx'), SCRIPTED, join(folder, 'cancelled-calls'), offer],
})
