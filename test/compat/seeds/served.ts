import { startGateway } from '../../../src/app/gateway.ts'
import { checkConfig } from '../../../src/config/check.ts'
import { parseJsonText } from '../../../src/config/json-text.ts'
import { type Log, SILENT } from '../../../src/telemetry/log.ts'

const DEMO = { mcpServers: { demo: { builtin: 'demo' } } }

/** A gateway in this process from a configuration file's text, with the demo server unless it says otherwise, on a port of its own. */
export const serve = async (config: object = {}, { log = SILENT, data }: { log?: Log; data?: string } = {}) => {
  const { snapshot, problems } = checkConfig(parseJsonText(JSON.stringify({ ...DEMO, ...config })), { env: {} })
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
  const gateway = await startGateway({ ...snapshot, listen: { ...snapshot.listen, port: 0 } }, { log, data })
  return { origin: gateway.origin, ready: gateway.ready, load: gateway.load, close: gateway.close }
}

export type Served = Awaited<ReturnType<typeof serve>>
