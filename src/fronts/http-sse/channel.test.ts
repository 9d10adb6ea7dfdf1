import { afterEach, expect, test, vi } from 'vitest'
import { openChannel, openRawChannel } from '../../../test/support/channel.ts'
import {
  type Front,
  rpcInitialize,
  rpcNotification,
  rpcRequest,
  type Script,
  startFront,
} from '../../../test/support/front.ts'
import { send } from '../../../test/support/raw.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
const start = async (...args: Parameters<typeof startFront>): Promise<void> => {
  front = await startFront(...args)
}

afterEach(async () => {
  vi.useRealTimers()
  await front.close()
})

test('GET with a channel’s id is rejected because the channel has its stream; DELETE ends the channel', async () => {
  await start()
  const channel = await openChannel(`${front.origin}/mcp`)
  const headers = { 'mcp-session-id': channel.id }
  const stream = await send(front.url, { method: 'GET', headers })
  expect([stream.status, stream.headers.allow]).toEqual([405, 'POST, DELETE'])
  expect((await send(front.url, { method: 'DELETE', headers })).status).toBe(200)
  const [closed, ...more] = await channel.rest()
  expect([closed?.event, JSON.parse(closed?.data ?? ''), more]).toEqual([
    'lifecycle',
    { jsonrpc: '2.0', method: 'streamClosed', params: { reason: 'closed' } },
    [],
  ])
  expect((await channel.post(rpcRequest(1))).status).toBe(404)
})

test.each(['/mcp', '/sse?events=lifecycle'])(
  'a closing gateway says so on a channel of %s, after the answers',
  async path => {
    await start({ 'tools/call': () => {} })
    const channel = await openChannel(`${front.origin}${path}`)
    await channel.post(rpcRequest(1))
    await front.whenSeen('tools/call')
    await front.close()
    const [failed, closed] = await channel.rest()
    expect(JSON.parse(failed?.data ?? '')).toMatchObject({ id: 1, error: { code: -32603 } })
    expect(closed).toEqual({
      event: 'lifecycle',
      data: '{"jsonrpc":"2.0","method":"streamClosed","params":{"reason":"shutdown"}}',
    })
  },
)

test.each([
  ['/sse?events=ping', 'event: ping\ndata: \n\n'],
  ['/sse?events=lifecycle,ping', 'event: ping\ndata: \n\n'],
  ['/mcp?events=ping', 'event: ping\ndata: \n\n'],
  [
    '/mcp',
    'event: lifecycle\ndata: {"jsonrpc":"2.0","method":"ping","params":{"timestamp":"2030-01-01T00:00:30.000Z"}}\n\n',
  ],
])('a channel of %s gets a comment every 15 s and a ping every 30 s', async (path, ping) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'Date'], now: new Date('2030-01-01T00:00:00Z') })
  await start()
  const channel = await openChannel(`${front.origin}${path}`)
  const opening = channel.text().length
  const silent = () => channel.text().slice(opening)
  vi.advanceTimersByTime(14_000)
  vi.advanceTimersByTime(1000)
  await expect.poll(silent).toBe(':\n\n')
  vi.advanceTimersByTime(15_000)
  await expect.poll(silent).toBe(`:\n\n:\n\n${ping}`)
  vi.advanceTimersByTime(30_000)
  await expect.poll(() => silent().match(/^:$/gm)?.length).toBe(4)
  expect(silent().match(/ping/g)).toHaveLength(2)
})

test('on /mcp pings stop when the client speaks a newer revision, comments do not', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'Date'] })
  await start()
  const channel = await openChannel(`${front.origin}/mcp`)
  vi.advanceTimersByTime(30_000)
  await channel.nextOf('lifecycle')
  await channel.post(rpcInitialize('2025-03-26'))
  await channel.message()
  const before = channel.text().length
  vi.advanceTimersByTime(60_000)
  await expect.poll(() => channel.text().slice(before)).toBe(':\n\n'.repeat(4))
})

test.each(['2024-11-05', '2025-11-25'])('a client that asked for pings keeps them when it speaks %s', async version => {
  vi.useFakeTimers({ toFake: ['setInterval', 'Date'] })
  await start()
  const channel = await openChannel(`${front.origin}/sse?events=ping`)
  await channel.post(rpcInitialize(version))
  await channel.message()
  vi.advanceTimersByTime(30_000)
  expect(await channel.next()).toEqual({ event: 'ping', data: '' })
})

test('the configuration can send named events to every channel of /sse; a client may still turn them off', async () => {
  await start({}, { sse: { events: ['lifecycle'] } })
  const named = await openChannel(`${front.origin}/sse?events=lifecycle`)
  const configured = await openRawChannel(`${front.origin}/sse`)
  const refused = await openRawChannel(`${front.origin}/sse?events=`)
  await front.close()
  expect((await named.rest()).map(({ event }) => event)).toEqual(['lifecycle'])
  expect((await configured.rest()).map(({ event }) => event)).toEqual(['endpoint', 'lifecycle', 'lifecycle'])
  expect(configured.text()).toContain('streamClosed')
  expect((await refused.rest()).map(({ event }) => event)).toEqual(['endpoint'])
})

const FAULTY: Script = {
  'acme/note': () => {
    throw new Error('oops')
  },
}

test.each(['/sse', '/sse?workspace=other', '/mcp/other/sse'])(
  'on %s only endpoint and message events are sent, whatever happens',
  async path => {
    vi.useFakeTimers({ toFake: ['setInterval', 'Date'] })
    await start({
      ...FAULTY,
      'tools/call': exchange => exchange.sink({ kind: 'result', result: Json.of({ content: [] }) }),
    })
    const channel = await openRawChannel(`${front.origin}${path}`)
    const endpoint = await channel.nextOf('endpoint')
    const post = (body: object) => send(`${front.origin}${endpoint.data}`, { body })
    await post(rpcInitialize('2024-11-05'))
    await post(rpcRequest(1))
    vi.advanceTimersByTime(120_000)
    await expect.poll(() => channel.text().match(/^:$/gm)?.length).toBe(8) // keep-alives are comments
    expect((await post(rpcNotification('acme/note'))).status).toBe(500)
    expect((await channel.rest()).map(({ event }) => event)).toEqual(['message', 'message'])
    expect(channel.text().match(/^event: .*$/gm)).toEqual(['event: endpoint', 'event: message', 'event: message'])
  },
)

test('an internal error is an error event on a channel of /mcp, which ends', async () => {
  await start(FAULTY)
  const channel = await openChannel(`${front.origin}/mcp`)
  expect((await channel.post(rpcNotification('acme/note'))).status).toBe(500)
  expect(await channel.rest()).toEqual([
    { event: 'error', data: '{"code":-32603,"message":"Internal error"}' },
    { event: 'lifecycle', data: '{"jsonrpc":"2.0","method":"streamClosed","params":{"reason":"error"}}' },
  ])
  expect(front.channels.size).toBe(0)
})
