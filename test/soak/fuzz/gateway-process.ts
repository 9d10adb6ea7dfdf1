import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Figures, Order, Report } from './harness.ts'

/** A gateway in a child process. */
export interface GatewayProcess {
  readonly origin: string
  readonly errors: readonly string[] // what it logged as an error, and what reached no handler
  figures(): Promise<Figures>
  swap(config: object): Promise<void>
  stop(): Promise<void>
}

const HARNESS = fileURLToPath(new URL('./harness.ts', import.meta.url))

/** Starts the gateway with this configuration on a free port. */
export const startGatewayProcess = async (config: object): Promise<GatewayProcess> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-fuzz-'))
  let written = 0
  const write = async (content: object): Promise<string> => {
    const file = join(folder, `${++written}.json`)
    await writeFile(file, JSON.stringify({ listen: { port: 0 }, ...content }))
    return file
  }
  const child = fork(HARNESS, [await write(config)], { execArgv: ['--expose-gc', '--import', 'tsx'] })
  const errors: string[] = []
  child.on('message', (report: Report) => report.kind === 'error' && errors.push(report.text))
  child.on('exit', code => errors.push(`the gateway ended with exit code ${code}`))
  const { origin } = await reported(child, 'ready')
  const order = (what: Order): void => void child.send(what)
  return {
    origin,
    errors,
    figures: async () => {
      order({ kind: 'figures' })
      return (await reported(child, 'figures')).figures
    },
    swap: async next => {
      order({ kind: 'swap', file: await write(next) })
      await reported(child, 'swapped')
    },
    stop: async () => {
      child.removeAllListeners('exit')
      const ended = new Promise(resolve => child.once('exit', resolve))
      if (child.connected) child.disconnect()
      if (child.exitCode === null) await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The next report of that kind; rejects if the process ends first. */
const reported = <K extends Report['kind']>(child: ChildProcess, kind: K): Promise<Extract<Report, { kind: K }>> =>
  new Promise((resolve, reject) => {
    const settle = (): void => {
      child.off('message', onMessage)
      child.off('exit', onExit)
    }
    const onMessage = (report: Report): void => {
      if (report.kind !== kind) return
      settle()
      resolve(report as Extract<Report, { kind: K }>)
    }
    const onExit = (): void => {
      settle()
      reject(new Error(`the gateway process ended before it was ${kind}`))
    }
    child.on('message', onMessage)
    child.on('exit', onExit)
  })
