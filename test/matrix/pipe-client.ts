import { PassThrough } from 'node:stream'
import { serveStdioProxy } from '../../src/app/stdio-proxy.ts'
import type { Revision } from '../../src/protocol/revisions.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import { LineDecoder } from '../../src/wire/ndjson.ts'
import { type MatrixClient, type Wire, written } from './client.ts'
import { type Line, messageClient } from './message-client.ts'

/** A client of any revision on a pipe, served as `dragoman stdio` serves it. */
export const pipeClient = (url: string, revision: Revision, capabilities: object): Promise<MatrixClient> =>
  messageClient(openPipe(url), revision, capabilities)

/** A pipe to `dragoman stdio`; what is sent and received is one line each. */
export const openPipe = (url: string): Line => {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const daemon = { origin: new URL(url).origin, pid: process.pid, token: 'none is asked for' }
  const served = serveStdioProxy({
    daemon,
    findAgain: async () => daemon,
    workspace: 'default',
    input,
    output,
    log: SILENT,
    version: '0',
  })
  return {
    send: message => void input.write(`${written(message)}\n`),
    listen: take => {
      const lines = new LineDecoder(line => take(JSON.parse(line.toString()) as Wire, line.toString()))
      output.on('data', chunk => lines.feed(chunk))
    },
    close: async () => {
      input.end()
      await served
    },
  }
}
