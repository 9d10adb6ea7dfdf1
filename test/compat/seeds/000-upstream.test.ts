import { afterEach, describe, expect, it } from 'vitest'
import { MODERN, NEWEST_LEGACY } from '../../../src/protocol/revisions.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { scriptedServer } from '../../support/scripted-server.ts'
import { graphiti, STATUS, TOOLS } from '../../support/servers/seeds/graphiti.ts'
import { serve } from './served.ts'

/** Seed 000: an agent memory over Streamable HTTP; every answer is one SSE message. It is behind us. */

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** The server behind a redirect, a gateway before it, and a client of ours. */
const play = async (open: (url: string) => Promise<MatrixClient>) => {
  const { script, sessions } = graphiti()
  const server = await scriptedServer(script)
  const door = await scriptedServer(
    ({ url }, response) => void response.writeHead(308, { location: `${server.origin}${url}` }).end(),
  )
  const gateway = await serve({
    mcpServers: { graphiti: { url: `${door.origin}/mcp/`, allowCrossOriginRedirect: true } },
  })
  closing.push(server.close, door.close, gateway.close)
  const client = await open(`${gateway.origin}/mcp`)
  closing.push(() => client.close())
  return { server, door, sessions, client }
}

const CLIENTS: [string, (url: string) => Promise<MatrixClient>][] = [
  [MODERN, url => statelessClient(url, {})],
  [NEWEST_LEGACY, url => sessionClient(url, NEWEST_LEGACY, {})],
]

describe.each(CLIENTS)('a client of %s', (_, open) => {
  it('initializes, lists and calls, in the session the server gave', async () => {
    const { server, client, sessions } = await play(open)
    const { result } = await client.call('tools/list')
    expect(result?.tools).toMatchObject(TOOLS.map(name => ({ name })))
    const status = await client.call('tools/call', { name: 'get_status', arguments: {} })
    expect(status.result).toMatchObject({
      content: [{ type: 'text', text: JSON.stringify(STATUS) }],
      structuredContent: STATUS,
      isError: false,
    })
    for (const { headers } of [...server.of('tools/list'), ...server.of('tools/call')]) {
      expect(sessions).toContain(headers['mcp-session-id'])
      expect(headers).not.toHaveProperty('mcp-protocol-version') // it speaks a revision that has none
    }
  })

  it('goes straight to where a permanent redirect led', async () => {
    const { server, door, client } = await play(open)
    await client.call('tools/list')
    const knocks = door.arrivals.length
    for (let i = 0; i < 3; i++) await client.call('tools/call', { name: 'get_status', arguments: {} })
    expect(door.arrivals).toHaveLength(knocks)
    expect(server.of('tools/call')).toHaveLength(3)
    expect(server.of('tools/call')[0]?.url).toBe('/mcp/')
  })

  it('is told the server’s own words, under its own id, whatever id the server wrote', async () => {
    const { client } = await play(open)
    expect((await client.call('tools/call', { name: 'add_episode', arguments: {} })).error).toMatchObject({
      code: -32602,
      message: 'Unknown tool: add_episode',
    })
    expect((await client.call('tools/call', { name: 'clear_graph', arguments: {} })).error).toMatchObject({
      code: -32600,
      message: 'Not allowed here',
    })
  })

  it('does not notice that the server forgot its session', async () => {
    const { server, sessions, client } = await play(open)
    const getStatus = () => client.call('tools/call', { name: 'get_status', arguments: {} })
    await getStatus()
    const before = server.of('initialize').length
    sessions.clear()
    const { result } = await getStatus()
    expect(result).toMatchObject({ structuredContent: STATUS })
    const opened = server.of('initialize').length - before
    expect(opened).toBeGreaterThanOrEqual(1)
    expect(opened).toBeLessThanOrEqual(2) // the client's, and that of a list which is fetched meanwhile
  })
})

it('is probed once, and never without the headers it insists on', async () => {
  const { server, client } = await play(url => statelessClient(url, {}))
  for (let i = 0; i < 3; i++) await client.call('tools/list')
  expect(server.of('server/discover')).toHaveLength(1)
  const insisting = server.of('POST').map(({ headers }) => headers.accept)
  expect(new Set(insisting)).toEqual(new Set(['application/json, text/event-stream']))
})
