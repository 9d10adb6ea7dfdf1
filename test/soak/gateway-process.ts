import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Figures } from './harness.ts'

/** A gateway in a child process. */
export interface GatewayProcess {
  readonly pid: number
  readonly origin: string
  figures(): Promise<Figures>
  stop(): Promise<void>
}

const HARNESS = fileURLToPath(new URL('./harness.ts', import.meta.url))

/** Starts the gateway with this configuration on a free port. The recorder is off: it would fill its own share of memory. */
export const startGatewayProcess = async (config: object): Promise<GatewayProcess> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-soak-'))
  const file = join(folder, 'config.json')
  await writeFile(file, JSON.stringify({ listen: { port: 0 }, recorder: { enabled: false }, ...config }))
  const child = fork(HARNESS, [file], { execArgv: ['--expose-gc', '--import', 'tsx'] })
  const failed = once(child, 'exit').then(() => Promise.reject(new Error('the gateway process ended early')))
  failed.catch(() => {})
  const [origin] = await Promise.race([once(child, 'message'), failed])
  await rm(folder, { recursive: true })
  return {
    pid: child.pid ?? 0,
    origin,
    figures: async () => {
      child.send('figures')
      const [answer] = await Promise.race([once(child, 'message'), failed])
      return answer
    },
    stop: async () => {
      child.disconnect()
      await failed.catch(() => {})
    },
  }
}
