import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { type Log, logUnhandledErrors } from '../telemetry/log.ts'
import type { LogHistory } from '../telemetry/log-history.ts'
import { WORKER_VARIABLE } from '../workers/messages.ts'
import type { WorkerProcesses } from '../workers/worker-processes.ts'
import type { CommandContext, LoadConfig } from './command.ts'
import { createReloader } from './reloader.ts'
import { openServeState } from './serve-state.ts'

/** Whether the main process of a gateway has started this one. Its child processes must not think so of themselves. */
export const isWorkerProcess = (): boolean => {
  const isWorker = process.env[WORKER_VARIABLE] !== undefined && process.connected === true
  delete process.env[WORKER_VARIABLE]
  return isWorker
}

interface WorkersPlan {
  readonly isEphemeral: boolean // --ephemeral
  readonly history: LogHistory
  readonly log: Log
}

/** The workers of a gateway, which start with it; undefined if it needs none. Throws a ConfigError. */
export const planWorkers = async (
  flag: number | undefined,
  snapshot: Pick<Snapshot, 'workers' | 'store'>,
  { isEphemeral, history, log }: WorkersPlan,
): Promise<WorkerProcesses | undefined> => {
  const count = flag ?? snapshot.workers ?? 1
  if (count === 1) return undefined
  if (isEphemeral)
    throw new ConfigError(
      'workers share their sessions through the data directory: leave out --ephemeral, or use one worker',
    )
  if (snapshot.store)
    throw new ConfigError(
      'workers share their sessions through the data directory, and "store" names a database: start several gateways on it instead, or use one worker',
    )
  const { WorkerProcesses } = await import('../workers/worker-processes.ts')
  return new WorkerProcesses({ count, history, log })
}

interface WorkerOptions {
  readonly load: LoadConfig
  readonly setFile: (file: string | undefined) => void
  readonly log: Log
  readonly history: LogHistory
  readonly data: string
  readonly insecure: boolean
}

/** Serves as one of several processes, until the main process ends or says so. */
export const serveWorker = async (
  { load, setFile, log: given, history, data, insecure }: WorkerOptions,
  { startGateway, version }: CommandContext,
): Promise<number> => {
  const { MainLink } = await import('../workers/main-link.ts')
  const main = await MainLink.connect()
  const log = given.child({ worker: main.facts.number })
  main.shareLog(history)
  setFile(main.facts.file)
  const snapshot = await load()
  const sharing = { isMain: false, wake: main.wake }
  const state = await openServeState(snapshot, { data, log, isEphemeral: false, sharing })
  const options = { log, history, data, insecure, loadNext: load, version, state, main, onReload: () => {} }
  const gateway = await startGateway(snapshot, options)
  const reload = createReloader({ load: () => load(), swap: gateway.swap, first: snapshot, log })
  main.onReload = file => {
    setFile(file)
    void reload()
  }
  logUnhandledErrors(log)
  await main.stopped
  await gateway.close()
  await state?.store.close()
  main.leave()
  return 0
}
