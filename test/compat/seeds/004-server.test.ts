import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { openRawChannel } from '../../support/channel.ts'
import { send } from '../../support/raw.ts'
import type { Endpoint } from '../../support/servers/http.ts'
import { startIssues } from './issues-server.ts'
import { type Served, serve } from './served.ts'

/** Seed 004: `/mcp/:workspace`, names with a slash, named events, no handshake and no session id. We are that gateway. */

let github: Endpoint & { readonly calls: string[] }
const start = (): Promise<Served> =>
  serve({ mcpServers: { github: { url: github.url } }, workspaces: { workspace: { servers: ['github'] } } })

beforeAll(async () => {
  github = await startIssues()
})
afterAll(() => github.close())
afterEach(() => void vi.useRealTimers())

const LIST = { jsonrpc: '2.0', id: '1', method: 'tools/list' }
const call = (id: string, name: string, given: object = { repo: 'user/repo' }) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: given },
})

/** The client of the document: one stream, and POSTs to the same URL that say nothing of it. */
const connect = async (served: Served) => {
  const url = `${served.origin}/mcp/workspace`
  const channel = await openRawChannel(url)
  const post = (body: object) => send(url, { headers: { 'content-type': 'application/json', accept: '*/*' }, body })
  const event = async (name: string) => JSON.parse((await channel.nextOf(name)).data)
  return { channel, post, event }
}

it('plays the whole document: opened, list, call, error, ping, closed', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'Date'], now: new Date('2025-01-11T12:00:00Z') })
  const served = await start()
  const { channel, post, event } = await connect(served)
  expect(channel.headers).toMatchObject({ 'content-type': 'text/event-stream', connection: 'keep-alive' })
  expect(channel.headers['cache-control']).toContain('no-cache')
  expect(await event('lifecycle')).toEqual({
    jsonrpc: '2.0',
    method: 'streamOpened',
    params: { timestamp: '2025-01-11T12:00:00.000Z', sessionId: channel.headers['mcp-session-id'] },
  })

  expect(await post(LIST)).toMatchObject({ status: 202, text: '' })
  const listed = await event('response')
  expect(listed).toMatchObject({ jsonrpc: '2.0', id: '1', result: { tools: [{ description: 'List GitHub issues' }] } })

  await post(call('2', 'github/list_issues'))
  expect(await event('response')).toMatchObject({
    id: '2',
    result: { content: [{ type: 'text', text: 'Issue list: user/repo' }] },
  })
  expect(github.calls).toEqual(['list_issues'])

  await post({ jsonrpc: '2.0', id: '3', method: 'no/such' })
  expect(await event('response')).toMatchObject({ id: '3', error: { code: -32601 } })

  vi.advanceTimersByTime(60_000)
  const pings = [await event('lifecycle'), await event('lifecycle')]
  expect(pings).toEqual([
    { jsonrpc: '2.0', method: 'ping', params: { timestamp: '2025-01-11T12:00:30.000Z' } },
    { jsonrpc: '2.0', method: 'ping', params: { timestamp: '2025-01-11T12:01:00.000Z' } },
  ])

  await served.close()
  expect(await channel.rest()).toEqual([
    { event: 'lifecycle', data: '{"jsonrpc":"2.0","method":"streamClosed","params":{"reason":"shutdown"}}' },
  ])
})

describe('a client that never shakes hands', () => {
  let served: Served
  beforeAll(async () => {
    served = await start()
  })
  afterAll(() => served.close())

  it.each(['github/list_issues', 'github__list_issues', 'list_issues'])('may call the tool %s', async name => {
    const { channel, post, event } = await connect(served)
    await post(call('1', name))
    expect((await event('response')).result.content[0].text).toBe('Issue list: user/repo')
    channel.close()
    await expect.poll(() => served.load().channels).toBe(0)
  })

  it('has its answers matched by id, in whatever order', async () => {
    const { channel, post, event } = await connect(served)
    const ids = ['a', 'b', 'c', 'd']
    await Promise.all(ids.map(id => post(call(id, 'github/list_issues', { repo: id }))))
    const texts = new Map<string, string>()
    for (const _ of ids) {
      const { id, result } = await event('response')
      texts.set(id, result.content[0].text)
    }
    expect([...texts].sort()).toEqual(ids.map(id => [id, `Issue list: ${id}`]))
    channel.close()
    await expect.poll(() => served.load().channels).toBe(0)
  })

  it.each([
    ['no JSON', '{', -32700],
    ['no "jsonrpc"', { id: '1', method: 'tools/list' }, -32600],
    ['an id that is null', { jsonrpc: '2.0', id: null, method: 'tools/list' }, -32600],
    ['a result and an error', { jsonrpc: '2.0', id: '1', result: {}, error: { code: 1, message: 'x' } }, -32600],
  ])('is refused %s', async (_name, body, code) => {
    const { channel, post } = await connect(served)
    const reply = await post(body as object)
    expect([reply.status, reply.json.error?.code]).toEqual([400, code])
    channel.close()
    await expect.poll(() => served.load().channels).toBe(0)
  })

  it('needs its stream: without one there is nowhere to answer', async () => {
    const reply = await send(`${served.origin}/mcp/workspace`, { body: LIST })
    expect([reply.status, reply.json.id, reply.json.error?.message]).toEqual([
      400,
      '1',
      'Bad Request: Missing session ID',
    ])
  })
})
