import { afterEach, expect, test, vi } from 'vitest'
import { openChannel, openRawChannel } from '../../../test/support/channel.ts'
import { type Front, type Script, startFront } from '../../../test/support/front.ts'
import { send } from '../../../test/support/raw.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
let origin: string

const start = async (script: Script = {}, options?: Parameters<typeof startFront>[1]): Promise<void> => {
  front = await startFront(script, options)
  origin = `http://127.0.0.1:${front.port}`
}

afterEach(async () => {
  vi.useRealTimers()
  await front.close()
})

const request = (id: number | string, method = 'tools/call', params: object = { name: 'echo' }) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})
const initialize = (protocolVersion: unknown, more: object = {}) =>
  request(0, 'initialize', { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' }, ...more })
const note = (method: string, params: object = {}) => ({ jsonrpc: '2.0', method, params })
const last = (method: string): Exchange => front.seen.filter(exchange => exchange.method === method).at(-1) as Exchange

/** Waits until a request of that method has come through `times` times. */
const seen = async (method: string, times = 1): Promise<Exchange> => {
  await expect.poll(() => front.seen.filter(exchange => exchange.method === method).length).toBe(times)
  return last(method)
}

test('GET with a channel’s id is refused: it has its stream; DELETE ends it', async () => {
  await start()
  const channel = await openChannel(`${origin}/mcp`)
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
  expect((await channel.post(request(1))).status).toBe(404)
})

test.each(['/mcp', '/sse?events=lifecycle'])(
  'a closing gateway says so on a channel of %s, after the answers',
  async path => {
    await start({ 'tools/call': () => {} })
    const channel = await openChannel(`${origin}${path}`)
    await channel.post(request(1))
    await seen('tools/call')
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
  const channel = await openChannel(`${origin}${path}`)
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

test('on /mcp pings stop when a newer revision is spoken, comments do not', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'Date'] })
  await start()
  const channel = await openChannel(`${origin}/mcp`)
  vi.advanceTimersByTime(30_000)
  await channel.nextOf('lifecycle')
  await channel.post(initialize('2025-03-26'))
  await channel.message()
  const before = channel.text().length
  vi.advanceTimersByTime(60_000)
  await expect.poll(() => channel.text().slice(before)).toBe(':\n\n'.repeat(4))
})

test.each(['2024-11-05', '2025-11-25'])('a client that asked for pings keeps them when it speaks %s', async version => {
  vi.useFakeTimers({ toFake: ['setInterval', 'Date'] })
  await start()
  const channel = await openChannel(`${origin}/sse?events=ping`)
  await channel.post(initialize(version))
  await channel.message()
  vi.advanceTimersByTime(30_000)
  expect(await channel.next()).toEqual({ event: 'ping', data: '' })
})

test('the configuration can send named events to every channel of /sse; a client may still refuse them', async () => {
  await start({}, { sse: { events: ['lifecycle'] } })
  const named = await openChannel(`${origin}/sse?events=lifecycle`)
  const configured = await openRawChannel(`${origin}/sse`)
  const refused = await openRawChannel(`${origin}/sse?events=`)
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
    const channel = await openRawChannel(`${origin}${path}`)
    const endpoint = await channel.nextOf('endpoint')
    const post = (body: object) => send(`${origin}${endpoint.data}`, { body })
    await post(initialize('2024-11-05'))
    await post(request(1))
    vi.advanceTimersByTime(120_000)
    await expect.poll(() => channel.text().match(/^:$/gm)?.length).toBe(8) // keep-alives are comments
    expect((await post(note('acme/note'))).status).toBe(500)
    expect((await channel.rest()).map(({ event }) => event)).toEqual(['message', 'message'])
    expect(channel.text().match(/^event: .*$/gm)).toEqual(['event: endpoint', 'event: message', 'event: message'])
  },
)

test('a fault inside the gateway is an error event on a channel of /mcp, which ends', async () => {
  await start(FAULTY)
  const channel = await openChannel(`${origin}/mcp`)
  expect((await channel.post(note('acme/note'))).status).toBe(500)
  expect(await channel.rest()).toEqual([
    { event: 'error', data: '{"code":-32603,"message":"Internal error"}' },
    { event: 'lifecycle', data: '{"jsonrpc":"2.0","method":"streamClosed","params":{"reason":"error"}}' },
  ])
  expect(front.channels.size).toBe(0)
})
