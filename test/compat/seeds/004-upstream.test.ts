import { afterEach, describe, expect, it } from 'vitest'
import { MODERN, NEWEST_LEGACY } from '../../../src/protocol/revisions.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { hub, ISSUES } from '../../support/servers/seeds/hub.ts'
import { serve } from './served.ts'

/** Seed 004: one URL, requests posted to it, answers as `event: response` on its stream, no handshake. It is behind us. */

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const play = async (open: (url: string) => Promise<MatrixClient>) => {
  const server = await hub()
  const gateway = await serve({ mcpServers: { hub: { url: `${server.origin}/mcp/workspace` } } })
  closing.push(server.close, gateway.close)
  const client = await open(`${gateway.origin}/mcp`)
  closing.push(() => client.close())
  const issues = (repo: string) => client.call('tools/call', { name: ISSUES, arguments: { repo } })
  return { server, client, issues }
}

const CLIENTS: [string, (url: string) => Promise<MatrixClient>][] = [
  [MODERN, url => statelessClient(url, {})],
  [NEWEST_LEGACY, url => sessionClient(url, NEWEST_LEGACY, {})],
]

describe.each(CLIENTS)('a client of %s', (_, open) => {
  it('lists and calls without any handshake at the server', async () => {
    const { server, client, issues } = await play(open)
    expect((await client.call('tools/list')).result?.tools).toMatchObject([{ name: ISSUES }])
    server.ping()
    expect((await issues('user/repo')).result).toMatchObject({ content: [{ type: 'text', text: 'Issue list: ...' }] })
    expect(server.of('notifications/initialized')).toHaveLength(0)
    expect(server.of('tools/call')[0]?.url).toBe('/mcp/workspace')
  })

  it('gets the server’s error with what it adds to it', async () => {
    const { issues } = await play(open)
    expect((await issues('user/busy')).error).toMatchObject({
      code: -32603,
      message: 'GitHub API rate limit exceeded',
      data: { retry_after: 3600 },
    })
  })

  it('gets one clear error when the server shuts its stream, and the next call opens another', async () => {
    const { server, issues } = await play(open)
    expect((await issues('user/repo')).result).toBeDefined()
    server.fallSilent(true)
    const call = issues('user/repo')
    await server.arrived('tools/call', 2)
    server.shutDown()
    expect((await call).error).toMatchObject({ code: -32603, data: { reason: 'upstream_stream_lost' } })
    server.fallSilent(false)
    const before = server.of('GET').length
    expect((await issues('user/repo')).result).toMatchObject({ content: [{ text: 'Issue list: ...' }] })
    expect(server.of('GET')).toHaveLength(before + 1)
  })
})
