import { type Gateway, startGateway } from '../../src/app/gateway.ts'
import { createReloader } from '../../src/cli/reloader.ts'
import { loadConfig } from '../../src/config/load.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import { LogHistory, withHistory } from '../../src/telemetry/log-history.ts'

/** A gateway that reloads its file, as `dragoman serve` does. */
export const startWithFile = async (file: string, data: string): Promise<Gateway> => {
  const load = (next = file, text?: string) => loadConfig({ file: next, text, env: process.env, flags: { port: 0 } })
  const snapshot = await load()
  const history = new LogHistory()
  const log = withHistory(SILENT, history)
  let reload: ReturnType<typeof createReloader> | undefined
  const control = {
    reload: async () => {
      const outcome = await reload?.(true)
      if (!outcome || outcome.kind === 'failed') throw outcome?.error ?? new Error('not started')
      return outcome.difference
    },
    restart: () => Promise.resolve(),
    stop: () => {},
  }
  const gateway = await startGateway(snapshot, { log, version: '1.2.3', data, history, control, loadNext: load })
  const { swap, rejectedReload: onRejected } = gateway
  reload = createReloader({ load: () => load(), swap, first: snapshot, onRejected, log })
  await gateway.ready
  return gateway
}
