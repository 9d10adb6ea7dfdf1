import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A PostgreSQL for one run. */
export interface BenchPostgres {
  readonly url: string
  stop(): Promise<void>
}

const PROGRAM = fileURLToPath(new URL('../../test/support/postgres-program.ts', import.meta.url))
const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Starts the one that the tests use, or names that of DATABASE_URL. */
export const startBenchPostgres = async (): Promise<BenchPostgres> => {
  const child = spawn(process.execPath, ['--import', 'tsx', PROGRAM], { cwd: ROOT, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const started = once(child.stdout, 'data')
  const [first] = await Promise.race([started, ended.then(() => Promise.reject(new Error('PostgreSQL did not start')))])
  return {
    url: String(first).trim(),
    stop: async () => {
      child.stdin.end()
      await ended
    },
  }
}
