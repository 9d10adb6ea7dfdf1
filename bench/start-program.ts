import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Dialect, Peer, Target } from './peer.ts'
import type { Program } from './peer-programs.ts'

/** A port of this machine that was free a moment ago. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** What the arguments of a gateway are made from. */
interface Place {
  readonly upstream: string // URL
  readonly port: number
  readonly folder: string // is removed when this process ends
  readonly config: (text: string) => string // writes a file and returns its path
}

interface ProgramPeer extends Omit<Peer, 'start' | 'missing'> {
  readonly program: Program
  readonly path?: string // of the URL
  readonly args: (place: Place) => readonly string[]
}

const STDIO_UPSTREAM = fileURLToPath(new URL('./stdio-upstream.js', import.meta.url))

/** The command of the upstream for gateways that only support stdio servers. */
export const stdioUpstream = (dialect: Dialect): string[] => [process.execPath, STDIO_UPSTREAM, dialect]

const startIn = async (peer: ProgramPeer, path: string, upstream: Target): Promise<Target> => {
  const folder = mkdtempSync(join(tmpdir(), 'dragoman-bench-peer-'))
  const config = (text: string): string => {
    const file = join(folder, 'config')
    writeFileSync(file, text)
    return file
  }
  const port = await freePort()
  const args = peer.args({ upstream: upstream.url, port, folder, config })
  const startedAt = Date.now()
  // A group of its own: stdio servers that the gateway has started end with it.
  const child = spawn(path, args, { stdio: ['ignore', 'ignore', 'ignore'], detached: true })
  child.on('error', () => process.exit(1))
  child.on('exit', () => process.exit(1)) // `nextMessage` reports it
  process.once('exit', () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  return { url: `http://127.0.0.1:${port}${peer.path ?? '/mcp'}`, pid: child.pid ?? 0, startedAt }
}

/** A contestant that is a program of others. It is started without a wait: the first answer is timed. */
export const programPeer = (peer: ProgramPeer): Peer => ({
  about: peer.about,
  dialect: peer.dialect,
  missing: peer.program.path === undefined ? `not installed (${peer.program.install})` : undefined,
  start: upstream => startIn(peer, peer.program.path ?? '', upstream),
})
