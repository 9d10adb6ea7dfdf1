import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startNode } from './children.ts'

const MAIN = new URL('../../dist/main.js', import.meta.url).pathname
const START_MS = 20_000
const POLL_MS = 50

/** A running daemon. */
export interface Daemon {
  /** The address of one workspace. */
  url(workspace: string): string
  stop(): Promise<void>
}

/** Starts the built daemon with one server, on any free port, and waits until it is healthy. */
export const startDaemon = async (folder: string, name: string, server: object): Promise<Daemon> => {
  const config = join(folder, `${name}.json`)
  await writeFile(config, JSON.stringify({ mcpServers: { [name]: server } }))
  const child = startNode([MAIN, 'serve', '--config', config, '--port', '0', '--data', join(folder, `${name}-data`)])
  let hasEnded = false
  void child.ended.then(() => {
    hasEnded = true
  })
  for (const deadline = Date.now() + START_MS; Date.now() < deadline && !hasEnded; ) {
    const origin = await healthyOrigin(child.output())
    if (origin !== undefined) return { url: workspace => `${origin}/mcp/${workspace}`, stop: child.stop }
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
  await child.stop()
  throw new Error(`The daemon did not start:\n${child.tail()}`)
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
