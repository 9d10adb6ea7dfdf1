import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { freePort } from './free-port.ts'

const PROGRAM = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))
const PATHS = { sse: '/sse', streamableHttp: '/mcp' } as const
const PATIENCE_MS = 15_000

/** Runs `@modelcontextprotocol/server-everything` as a process of its own, on a free port. */
export const startServerEverything = async (
  mode: keyof typeof PATHS,
): Promise<{ readonly url: string; close(): Promise<void> }> => {
  const port = await freePort()
  const child = spawn(process.execPath, [PROGRAM, mode], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const killed = () => void child.kill('SIGKILL')
  process.once('exit', killed)
  await listening(child)
  return {
    url: `http://127.0.0.1:${port}${PATHS[mode]}`,
    close: async () => {
      process.off('exit', killed)
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** It says so on stderr. */
const listening = (child: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    let said = ''
    const timer = setTimeout(() => reject(new Error(`server-everything did not start: ${said}`)), PATIENCE_MS)
    child.once('exit', () => reject(new Error(`server-everything ended: ${said}`)))
    child.stderr?.on('data', (chunk: Buffer) => {
      said = `${said}${chunk}`.slice(-2000)
      if (!/running on port|listening on port/i.test(said)) return
      clearTimeout(timer)
      resolve()
    })
  })
