import { type ChildProcess, spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { adopt } from './children.ts'
import type { Target } from './peer.ts'
import { PROBE_FLAGS, type Probed, probe } from './probed.ts'
import { freePort } from './start-program.ts'

/** The built daemon and its commands. */
export const PROGRAM = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

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
    await sleep(10)
  }
}

interface Config {
  readonly store?: string
  readonly audit?: boolean
  readonly recorder?: boolean
  readonly auth?: object
  readonly telemetry?: object
  readonly mcpServers: Readonly<Record<string, object>>
  readonly limits?: Readonly<Record<string, number>>
  readonly workspaces?: Readonly<Record<string, object>>
}

interface LaunchOptions {
  readonly nodeFlags?: readonly string[]
  readonly channel?: 'ipc' | 'ignore'
  readonly args?: readonly string[] // of `serve`
  readonly data?: string | undefined // a directory that is kept; none: one of its own
}

const launch = async (
  settings: Config,
  { nodeFlags = [], channel = 'ignore', args: flags = [], data }: LaunchOptions = {},
): Promise<{ target: Target; child: ChildProcess; data: string }> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-bench-'))
  const config = join(folder, 'config.json')
  await writeFile(config, JSON.stringify(settings))
  const port = await freePort()
  const args = [...nodeFlags, PROGRAM, 'serve', '--config', config, '--port', String(port), '--data', data ?? folder]
  const stdio = ['ignore', 'ignore', 'inherit', channel] as const
  const startedAt = Date.now()
  const child = spawn(process.execPath, [...args, ...flags, '--log-level', 'error'], { stdio: [...stdio] })
  process.once('exit', () => {
    child.kill()
    rmSync(folder, { recursive: true })
  })
  await untilHealthy(`http://127.0.0.1:${port}`, () => child.exitCode !== null)
  return {
    target: { url: `http://127.0.0.1:${port}/mcp`, pid: child.pid ?? 0, startedAt },
    child,
    data: data ?? folder,
  }
}

/** Starts the built daemon in a process of its own. */
export const startConfigured = async (config: Config, nodeFlags: readonly string[] = []): Promise<Target> =>
  (await launch(config, { nodeFlags })).target

/** Starts it with that entry of `mcpServers` as its only server. */
export const startDragoman = (server: object, nodeFlags: readonly string[] = []): Promise<Target> =>
  startConfigured({ mcpServers: { upstream: server } }, nodeFlags)

/** Starts the built daemon so that it can be asked what memory it holds. */
export const startProbedDragoman = async (config: Config, data?: string): Promise<Probed> => {
  const { target, child } = await launch(config, { nodeFlags: PROBE_FLAGS, channel: 'ipc', data })
  return probe(target, adopt(child))
}

/** Starts the built daemon; its commands find it by the data directory. */
export const startDragomanWithData = async (config: Config): Promise<DragomanWithData> => {
  const { target, data, child } = await launch(config)
  return { ...target, data, child }
}

/** The built daemon as a process that is ended by hand. */
export interface StartedDragoman extends Target {
  readonly child: ChildProcess
}

export interface DragomanWithData extends StartedDragoman {
  readonly data: string
}

/** Starts the built daemon with further flags of `serve`, and on a data directory that outlives it. */
export const startWith = async (config: Config, args: readonly string[], data?: string): Promise<StartedDragoman> => {
  const { target, child } = await launch(config, { args, data })
  return { ...target, child }
}
