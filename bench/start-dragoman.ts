import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Target } from './peer.ts'

const PROGRAM = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const untilHealthy = async (origin: string, hasEnded: () => boolean): Promise<void> => {
  const deadline = Date.now() + 20_000
  while (
    !(await fetch(`${origin}/healthz`).then(
      response => response.ok,
      () => false,
    ))
  ) {
    if (hasEnded()) throw new Error('the gateway ended before it listened')
    if (Date.now() > deadline) throw new Error('the gateway did not listen within 20 s')
    await sleep(50)
  }
}

/** Starts the built daemon in a process of its own, with the upstream as its only server. */
export const startDragoman = async (
  upstream: string,
  era: 'modern' | 'legacy',
  nodeFlags: readonly string[] = [],
): Promise<Target> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-bench-'))
  const config = join(folder, 'config.json')
  await writeFile(config, JSON.stringify({ mcpServers: { upstream: { url: upstream, era } } }))
  const port = await freePort()
  const args = [...nodeFlags, PROGRAM, 'serve', '--config', config, '--port', String(port), '--data', folder]
  const child = spawn(process.execPath, [...args, '--log-level', 'error'], { stdio: ['ignore', 'ignore', 'inherit'] })
  process.once('exit', () => {
    child.kill()
    rmSync(folder, { recursive: true })
  })
  await untilHealthy(`http://127.0.0.1:${port}`, () => child.exitCode !== null)
  return { url: `http://127.0.0.1:${port}/mcp`, pid: child.pid ?? 0 }
}
