import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startNode } from './children.ts'

/** The built program. */
export const MAIN = new URL('../../../dist/main.js', import.meta.url).pathname
const START_MS = 60_000 // on a machine that does other work
const POLL_MS = 50

/** A running daemon. */
export interface Daemon {
  readonly origin: string
  /** Its data directory. */
  readonly data: string
  url(way: Way): string
  stop(): Promise<void>
}

/**
 * The ways to a server: a workspace of its own, or one with others in it, every name as its server says it; or such a
 * workspace above its budget, which lists the tools of this server only.
 */
export type Way = 'alone' | 'among' | 'budgeted'

/** More than the tools of any server of the suite take together with the gateway's own, less than those of all servers. */
const BUDGET_TOKENS = 2400

/** A workspace for each way to the server. */
export const workspacesOf = (others: readonly string[]): Readonly<Record<Way, object>> => ({
  alone: { servers: ['server'] },
  among: { servers: ['server', ...others], names: 'plain' },
  budgeted: {
    servers: ['server', ...others],
    names: 'plain',
    budget: { tokens: BUDGET_TOKENS, favourites: ['server/*'] },
  },
})

interface DaemonOptions {
  readonly name?: string
  readonly store?: string
  readonly cluster?: { readonly labels: readonly string[] }
  readonly auth?: object
  readonly workers?: number
}

/** Starts the built daemon on any free port, with a workspace for each way to the server, and waits until it is healthy. */
export const startDaemon = async (
  folder: string,
  server: object,
  others: Readonly<Record<string, object>> = {},
  { name = 'daemon', ...settings }: DaemonOptions = {},
): Promise<Daemon> => {
  const { workers = 1 } = settings
  const config = join(folder, `${name}.json`)
  const workspaces = workspacesOf(Object.keys(others))
  await writeFile(config, JSON.stringify({ mcpServers: { server, ...others }, workspaces, ...settings }))
  const data = join(folder, `${name}-data`)
  const child = startNode([MAIN, 'serve', '--config', config, '--port', '0', '--data', data])
  let hasEnded = false
  void child.ended.then(() => {
    hasEnded = true
  })
  for (const deadline = Date.now() + START_MS; Date.now() < deadline && !hasEnded; ) {
    const origin = await healthyOrigin(child.output())
    if (origin !== undefined && (await hasWorkers(origin, workers)))
      return { origin, data, url: way => `${origin}/mcp/${way}`, stop: child.stop }
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
  await child.stop()
  throw new Error(`The daemon did not start:\n${child.tail()}`)
}

/** Whether all processes of the daemon serve. */
const hasWorkers = async (origin: string, count: number): Promise<boolean> => {
  if (count === 1) return true
  const { replicas } = (await (await fetch(`${origin}/readyz`)).json()) as { replicas: { address: string }[] }
  return replicas.filter(({ address }) => address !== '').length === count
}

/** The start lines may name the servers' addresses besides the daemon's own; only the latter answers /healthz. */
const healthyOrigin = async (output: string): Promise<string | undefined> => {
  for (const [, origin] of output.matchAll(/(http:\/\/127\.0\.0\.1:\d+)\/mcp/g)) {
    const response = await fetch(`${origin}/healthz`).catch(() => undefined)
    await response?.body?.cancel()
    if (response?.status === 200) return origin
  }
  return undefined
}
