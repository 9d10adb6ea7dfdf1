// What `dragoman stdio` runs, on stdin and stdout, before a gateway: `node --import tsx pipe-process.ts ORIGIN WORKSPACE`.
import { serveStdioProxy } from '../../../src/app/stdio-proxy.ts'
import { type Log, SILENT } from '../../../src/telemetry/log.ts'

const [, , origin = '', workspace = ''] = process.argv
const daemon = { origin, pid: process.pid, token: 'none is asked for' }
const complain = (message: string, error: unknown): void =>
  console.error(`${message}: ${error instanceof Error ? error.stack : JSON.stringify(error)}`)
const log: Log = {
  ...SILENT,
  error: (fields, message) => complain(message, 'err' in fields ? fields.err : fields),
  child: () => log,
}
process.on('uncaughtException', (error, source) => complain(source, error))
const [input, output] = [process.stdin, process.stdout]
await serveStdioProxy({ daemon, findAgain: async () => daemon, workspace, input, output, log, version: '0' })
process.exit()
