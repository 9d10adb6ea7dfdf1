import { onTestFinished } from 'vitest'
import type { RemoteServer } from '../../src/config/snapshot.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import { connectRemote, type RemoteOptions } from '../../src/upstreams/connect-remote.ts'
import { result, type Script, scriptedServer, sendJson } from './scripted-server.ts'

/** Answers every request with this result, and accepts notifications. */
export const answerWith =
  (value: object): Script =>
  ({ body }, response) => {
    if (body.id === undefined) response.writeHead(202).end()
    else sendJson(response, result(body.id, value))
  }

/** A scripted server, and an upstream that connects to it; both are closed when the test is over. */
export const connectScripted = async (
  script: Script,
  config: Partial<RemoteServer> = {},
  options: Partial<RemoteOptions> = {},
) => {
  const server = await scriptedServer(script)
  const remote = { kind: 'remote', url: server.url, type: 'auto', headers: {}, era: 'auto', timeoutMs: 2000 } as const
  const upstream = connectRemote({ name: 'far', ...remote, ...config }, { log: SILENT, ...options })
  onTestFinished(async () => {
    await upstream.close()
    await server.close()
  })
  return { server, upstream }
}
