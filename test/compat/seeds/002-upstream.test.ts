import { afterEach, describe, expect, it } from 'vitest'
import { MODERN, NEWEST_LEGACY } from '../../../src/protocol/revisions.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { LISTING, serena } from '../../support/servers/seeds/serena.ts'
import { serve } from './served.ts'

/** Seed 002: a daemon whose channel begins with a bare `data:` line, the absolute address for messages. It is behind us. */

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const play = async (open: (url: string) => Promise<MatrixClient>, entry: object = {}) => {
  const daemon = await serena()
  const gateway = await serve({ mcpServers: { serena: { url: `${daemon.origin}/sse`, ...entry } } })
  closing.push(daemon.close, gateway.close)
  const client = await open(`${gateway.origin}/mcp`)
  closing.push(() => client.close())
  return { daemon, client }
}

const listDir = (client: MatrixClient, path?: string) =>
  client.call('tools/call', {
    name: 'list_dir',
    arguments: { ...(path !== undefined && { relative_path: path }), recursive: false },
  })

const textOf = ({ result = {} }: { result?: Record<string, unknown> }): string | undefined =>
  (result.content as { text: string }[] | undefined)?.[0]?.text

const CLIENTS: [string, (url: string) => Promise<MatrixClient>][] = [
  [MODERN, url => statelessClient(url, {})],
  [NEWEST_LEGACY, url => sessionClient(url, NEWEST_LEGACY, {})],
]

describe.each(CLIENTS)('a client of %s', (_, open) => {
  it('calls through connecting, initializing and ready', async () => {
    const { daemon, client } = await play(open)
    expect(JSON.parse(textOf(await listDir(client, '.')) ?? '')).toEqual(LISTING)
    const posts = daemon.of('POST').filter(({ url }) => url.startsWith('/messages/'))
    const session = posts.find(({ body }) => body.method === 'tools/call')?.url
    expect(posts.filter(({ url }) => url === session).map(({ body }) => body.method)).toEqual(
      expect.arrayContaining(['initialize', 'notifications/initialized', 'tools/call']),
    )
  })

  it('hears the daemon’s own error', async () => {
    const { client } = await play(open, { type: 'sse' })
    expect((await listDir(client)).error).toMatchObject({
      code: -32602,
      message: "Invalid params: missing required field 'relative_path'",
    })
  })

  it('gets each answer by its id, with many in flight and the last answered first', async () => {
    const { daemon, client } = await play(open, { type: 'sse' })
    daemon.hold()
    const paths = ['a', 'b', 'c', 'd', 'e']
    const calls = paths.map(path => listDir(client, path))
    await daemon.arrived('tools/call', paths.length)
    daemon.release()
    expect((await Promise.all(calls)).map(textOf)).toEqual(paths)
  })

  it('gets one clear error when the channel closes on its call, and the next call works', async () => {
    const { daemon, client } = await play(open, { type: 'sse' })
    await client.call('tools/list')
    daemon.hold()
    const call = listDir(client, '.')
    await daemon.arrived('tools/call')
    for (const { response } of daemon.channels.values()) response.end()
    expect((await call).error).toMatchObject({
      code: -32603,
      message: 'Server "serena" lost the channel the answer was to come on',
      data: { reason: 'upstream_stream_lost' },
    })
    expect((await client.call('tools/list')).result?.tools).toHaveLength(1)
  })
})

it('is not troubled by a daemon that calls itself localhost', async () => {
  const daemon = await serena()
  const gateway = await serve({
    mcpServers: { serena: { type: 'sse', url: `${daemon.origin.replace('127.0.0.1', 'localhost')}/sse` } },
  })
  closing.push(daemon.close, gateway.close)
  const client = await statelessClient(`${gateway.origin}/mcp`, {})
  closing.push(() => client.close())
  expect((await client.call('tools/list')).result?.tools).toHaveLength(1)
})
