import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './free-port.ts'

const PROGRAM = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find(existsSync)
const START_MS = 10_000

/** Why there is no pooler here, or undefined when there is one. */
export const whyNoPooler = (): string | undefined => {
  if (process.env.DATABASE_URL) return 'the PostgreSQL of DATABASE_URL is reached without one'
  return PROGRAM ? undefined : 'no pooler: install the package "pgbouncer"'
}

/** pgbouncer in transaction mode before a PostgreSQL that is reached by a socket in a folder. */
export const startPooler = async (target: string): Promise<{ readonly url: string; stop(): Promise<void> }> => {
  const { pathname, searchParams, username } = new URL(target)
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-pooler-'))
  await chmod(folder, 0o755)
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  const settings = [
    '[databases]',
    `* = host=${searchParams.get('host')} user=${username || 'postgres'}`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1`,
    `listen_port = ${port}`,
    'auth_type = any',
    'pool_mode = transaction',
    'default_pool_size = 8',
    'max_client_conn = 200',
    'unix_socket_dir =',
  ]
  await writeFile(file, settings.join('\n'), { mode: 0o644 })
  const args = process.getuid?.() === 0 ? ['-u', 'postgres', file] : [file] // it does not run as root
  const child = spawn(PROGRAM ?? '', args, { stdio: 'ignore' })
  const stop = async (): Promise<void> => {
    if (child.exitCode === null) {
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    await rm(folder, { recursive: true, force: true })
  }
  await untilListening(port, child).catch(async (error: unknown) => {
    await stop()
    throw error
  })
  return { url: `postgres://postgres@127.0.0.1:${port}${pathname}`, stop }
}

const untilListening = async (port: number, child: ChildProcess): Promise<void> => {
  const deadline = Date.now() + START_MS
  while (Date.now() < deadline && child.exitCode === null) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isOpen) return
    await sleep(50)
  }
  throw new Error(`pgbouncer does not listen (exit code ${child.exitCode})`)
}
