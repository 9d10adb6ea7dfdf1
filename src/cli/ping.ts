import type { Daemon } from '../config/daemon-file.ts'
import { isMethodOf } from '../protocol/methods.ts'
import type { ServerPing } from '../protocol/status.ts'
import { Json } from '../wire/json/json.ts'
import { type Client, createClientCommand } from './client/client-command.ts'
import { ClientError, EXIT } from './client/exit-codes.ts'
import { reportErrors } from './client/list-command.ts'
import { type TargetSource, unknownServer } from './client/sources.ts'

/** Measures how long servers take to answer. */
export const run = createClientCommand({
  usage: ['ping [TARGET]', 'ping -- COMMAND…'],
  about: `Connects to every server, or to one, and measures an answer: to "ping", or to "server/discover" where the revision
has no ping. While a daemon runs, it measures the server itself; without a name, the daemon is measured.`,
  examples: [
    ['dragoman ping', 'the daemon, or every server of the configuration'],
    ['dragoman ping demo', 'one server of the daemon or the configuration'],
    ['dragoman ping https://example.com/mcp', 'the server at a URL'],
  ],
  words: [0, 1],
  hasServerWord: true,
  run: async client => {
    const { sources } = client
    if (sources.item !== undefined && sources.server === undefined) throw unknownServer(sources.item, sources.all)
    const results = await Promise.all(
      sources.all.map(async source => {
        try {
          return await measure(client, source)
        } catch (error) {
          if (!(error instanceof ClientError) || error.code === EXIT.cancelled) throw error
          return error
        }
      }),
    )
    const answered = results.flatMap(result => (result instanceof ClientError ? [] : [result]))
    if (client.isJson) client.write(`${JSON.stringify(answered)}\n`)
    else
      for (const { name, revision, connectMs, ms } of answered)
        client.write(`${name}\t${revision}\tconnected in ${connectMs} ms\tanswered in ${ms} ms\n`)
    return reportErrors(
      client,
      results.flatMap(result => (result instanceof ClientError ? [result] : [])),
    )
  },
})

interface Measured extends ServerPing {
  readonly name: string
}

const measure = async (client: Client, source: TargetSource): Promise<Measured> => {
  const { connection: target } = source
  const { server } = client.sources
  if (target.kind === 'daemon' && server !== undefined)
    return { name: server, ...(await pingByDaemon(client, target.daemon, server)) }
  const begun = performance.now()
  const connection = await client.connect(source)
  const opened = performance.now()
  const method = isMethodOf('ping', connection.revision) ? 'ping' : 'server/discover'
  await connection.request(method, Json.empty, 'calling')
  const [connectMs = 0, ms = 0] = [opened - begun, performance.now() - opened].map(time => Math.round(time * 10) / 10)
  return { name: source.label, revision: connection.revision, connectMs, ms }
}

/** The daemon answers most requests from what it knows of a server, so it is told to measure. */
const pingByDaemon = async ({ interrupted }: Client, daemon: Daemon, server: string): Promise<ServerPing> => {
  const { requestDaemon } = await import('./daemon-client.ts')
  const cancelling = new AbortController()
  const stopListening = interrupted.onAbort(() => cancelling.abort())
  try {
    const path = `/admin/servers/${encodeURIComponent(server)}/ping`
    return (await (await requestDaemon(daemon, path, {}, cancelling.signal)).json()) as ServerPing
  } catch (error) {
    if (interrupted.reason) throw new ClientError('cancelled while calling', EXIT.cancelled)
    throw error instanceof Error ? new ClientError(error.message, EXIT.unreachable) : error
  } finally {
    stopListening()
  }
}
