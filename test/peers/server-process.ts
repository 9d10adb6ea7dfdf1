import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { freePort } from '../support/free-port.ts'
import type { Command } from './process.ts'

const START_MS = 30_000
const POLL_MS = 100

/** A server that listens on a port of its own. */
export interface ServerProcess {
  readonly port: number
  stop(): Promise<void>
}

/** Starts a server on a free port and waits until it accepts connections. */
export const startServerProcess = async (
  commandFor: (port: number) => Command,
  { startMs = START_MS, signal = 'SIGKILL' }: { startMs?: number; signal?: NodeJS.Signals } = {},
): Promise<ServerProcess> => {
  const port = await freePort()
  const { command, args, env } = commandFor(port)
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] })
  const kill = (): void => void child.kill(signal)
  process.once('exit', kill)
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors = (errors + text).slice(-2000)
  })
  child.once('error', error => {
    errors += error.message
  })
  const stop = async (): Promise<void> => {
    process.off('exit', kill)
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    kill()
    await ended
  }
  for (const deadline = Date.now() + startMs; Date.now() < deadline && child.exitCode === null; ) {
    if (await accepts(port)) return { port, stop }
    await new Promise(resolve => setTimeout(resolve, POLL_MS))
  }
  await stop()
  throw new Error(`${command} did not listen on port ${port}:\n${errors}`)
}

const accepts = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
