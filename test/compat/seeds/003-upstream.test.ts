import { afterEach, describe, expect, it } from 'vitest'
import { MODERN, NEWEST_LEGACY } from '../../../src/protocol/revisions.ts'
import type { MatrixClient } from '../../matrix/client.ts'
import { sessionClient } from '../../matrix/session-client.ts'
import { statelessClient } from '../../matrix/stateless-client.ts'
import { kulturarv, TOKEN, TOOLS } from '../../support/servers/seeds/kulturarv.ts'
import { serve } from './served.ts'

/** Seed 003: answers both in the reply and on the channel, pings, wants a token, limits the rate. It is behind us. */

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const play = async (open: (url: string) => Promise<MatrixClient>, token = TOKEN) => {
  const server = await kulturarv()
  const headers = { Authorization: `Bearer ${token}` }
  const gateway = await serve({ mcpServers: { kulturarv: { url: `${server.origin}/sse`, headers } } })
  closing.push(server.close, gateway.close)
  const client = await open(`${gateway.origin}/mcp`)
  closing.push(() => client.close())
  const call = (name: string, given: object = {}) => client.call('tools/call', { name, arguments: given })
  return { server, client, call }
}

const modern = (url: string) => statelessClient(url, {})
const CLIENTS: [string, (url: string) => Promise<MatrixClient>][] = [
  [MODERN, modern],
  [NEWEST_LEGACY, url => sessionClient(url, NEWEST_LEGACY, {})],
]

describe.each(CLIENTS)('a client of %s', (_, open) => {
  it('lists and calls, and gets one answer of the two', async () => {
    const { client, call } = await play(open)
    expect((await client.call('tools/list')).result?.tools).toEqual(TOOLS)
    for (let i = 0; i < 5; i++) {
      const { result, notices } = await call('example-echo', { message: `Hello, World ${i}!` })
      expect(result).toMatchObject({ content: [{ type: 'text', text: `Echo: Hello, World ${i}!` }], isError: false })
      expect(notices).toEqual([])
    }
  })

  it('reads the failure of a tool as a result, and an error as an error', async () => {
    const { call } = await play(open)
    expect((await call('broken')).result).toMatchObject({
      content: [{ text: 'Error: Could not connect to API' }],
      isError: true,
    })
    expect((await call('failing')).error).toMatchObject({ code: -32000, message: 'Tool execution error' })
  })

  it('is not reached by pings, and fails with an error event', async () => {
    const { server, call } = await play(open)
    expect((await call('example-ping')).result).toMatchObject({ content: [{ text: 'pong' }] })
    const hanging = call('hanging')
    await server.until(() => server.of('tools/call').some(({ body }) => body.params?.name === 'hanging'), 'the call')
    server.push('event: ping\ndata: \n\n'.repeat(3))
    server.push('event: error\ndata: {"code":-32603,"message":"Internal error"}\n\n')
    const { error, notices } = await hanging
    expect(error).toMatchObject({ code: -32603, message: 'Internal error' })
    expect(notices).toEqual([])
  })

  it('is told that the server has too much to do', async () => {
    const { server, call } = await play(open)
    server.allow(1)
    expect((await call('example-ping')).result).toBeDefined()
    expect((await call('example-ping')).error).toMatchObject({
      message: 'Server "kulturarv" has too much to do (HTTP 429): try again later',
      data: { reason: 'upstream_busy' },
    })
  })
})

it('says which credentials to look at when the token is wrong, and does not show it', async () => {
  const { client } = await play(modern, 'wrong-token-77')
  const { error } = await client.call('tools/list')
  expect(error?.message).toContain('refused our credentials (HTTP 401: "Authentication required"): check its "headers"')
  expect(JSON.stringify(error)).not.toContain('wrong-token-77')
})
