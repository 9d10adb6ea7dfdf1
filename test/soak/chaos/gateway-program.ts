import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../support/free-port.ts'
import { livingWith } from '../../support/run-processes.ts'
import type { FaultTime } from './faults.ts'

const PROGRAM = fileURLToPath(new URL('../../../dist/main.js', import.meta.url))
const START_MS = 120_000 // on a machine that does other work
const STOP_MS = 20_000
const POLL_MS = 20

const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** The built program on one port and one data directory, started as often as needed. */
export interface GatewayProgram {
  readonly origin: string
  readonly data: string
  readonly holderKills: readonly FaultTime[] // of gateways that `dragoman stdio` had started instead, which were killed
  readonly pid: number // of the process that runs now; 0: none
  start(): Promise<void>
  /** Sends a signal, without waiting for what it does. */
  signal(signal: NodeJS.Signals): void
  /** Waits until the process has ended. */
  ended(): Promise<void>
  stop(): Promise<void>
  /** The last lines that it logged. */
  logTail(): string
}

const isHealthy = (origin: string): Promise<boolean> =>
  fetch(`${origin}/healthz`, { signal: AbortSignal.timeout(1_000) }).then(
    response => response.ok,
    () => false,
  )

/** A `dragoman stdio` that found no gateway starts one, which holds the data directory: true if there was one to end. */
const endHolder = (log: string, run: string): boolean => {
  const pid = Number([...log.matchAll(/in use by the dragoman with process id (\d+)/g)].at(-1)?.[1])
  if (!livingWith(`CHAOS_RUN=${run}`).includes(pid)) return false
  process.kill(pid, 'SIGKILL')
  return true
}

/** Prepares a gateway in that folder; it runs after `start`. */
export const prepareGateway = async (folder: string, config: object, run: string): Promise<GatewayProgram> => {
  const data = join(folder, 'data')
  await mkdir(data, { recursive: true })
  const file = join(folder, 'config.json')
  await writeFile(file, JSON.stringify(config))
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const logFile = join(folder, 'log')
  const holderKills: FaultTime[] = []
  let child: ChildProcess | undefined

  const start = async (): Promise<void> => {
    const log = openSync(logFile, 'a')
    const args = [PROGRAM, 'serve', '--config', file, '--port', String(port), '--data', data, '--log-level', 'info']
    const env = { ...process.env, DRAGOMAN_DATA: data, CHAOS_RUN: run }
    const started = spawn(process.execPath, args, { stdio: ['ignore', log, log], env })
    closeSync(log)
    child = started
    running.add(started)
    started.once('exit', () => running.delete(started))
    const deadline = Date.now() + START_MS
    while (!((await isHealthy(origin)) && existsSync(join(data, 'daemon.json')))) {
      if (started.exitCode !== null) {
        if (endHolder(logTail(), run)) {
          const beganAt = Date.now()
          await start()
          return void holderKills.push({ beganAt, endedAt: Date.now() })
        }
        throw new Error(`the gateway ended with ${started.exitCode}:\n${logTail()}`)
      }
      if (Date.now() > deadline) throw new Error(`the gateway did not start:\n${logTail()}`)
      await sleep(POLL_MS)
    }
  }

  const ended = async (): Promise<void> => {
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }

  const logTail = (): string => readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-20).join('\n')

  return {
    origin,
    data,
    holderKills,
    get pid() {
      return child && running.has(child) ? (child.pid ?? 0) : 0
    },
    start,
    signal: signal => void child?.kill(signal),
    ended,
    stop: async () => {
      child?.kill('SIGCONT')
      child?.kill('SIGTERM')
      const impatience = setTimeout(() => child?.kill('SIGKILL'), STOP_MS)
      await ended()
      clearTimeout(impatience)
    },
    logTail,
  }
}
