import { isMethodOf } from '../protocol/methods.ts'
import { Json } from '../wire/json/json.ts'
import { createClientCommand } from './client/client-command.ts'
import { ClientError, EXIT } from './client/exit-codes.ts'
import { reportErrors } from './client/list-command.ts'
import { unknownServer } from './client/sources.ts'

/** Measures how long servers take to answer. */
export const run = createClientCommand({
  usage: ['ping [TARGET]', 'ping -- COMMAND…'],
  about: `Connects to every server, or to one, and measures an answer: to "ping", or to "server/discover" where the revision
has no ping.`,
  examples: [
    ['dragoman ping', 'the daemon, or every server of the configuration'],
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
          const begun = performance.now()
          const connection = await client.connect(source)
          const opened = performance.now()
          const method = isMethodOf('ping', connection.revision) ? 'ping' : 'server/discover'
          await connection.request(method, Json.empty, 'calling')
          const [openMs, ms] = [opened - begun, performance.now() - opened].map(time => Math.round(time * 10) / 10)
          return { name: source.label, revision: connection.revision, connectMs: openMs ?? 0, ms: ms ?? 0 }
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
