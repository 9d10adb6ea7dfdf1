import { afterEach, expect, test, vi } from 'vitest'
import { openRawChannel } from '../../../test/support/channel.ts'
import { type Front, startFront } from '../../../test/support/front.ts'
import { modern, openStream, send } from '../../../test/support/raw.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
afterEach(() => front.close())

const start = async (principalSessions: number) => {
  front = await startFront({}, { limits: { principalSessions }, identify: header => header })
}

const as = (principal: string | undefined) => (principal === undefined ? undefined : { authorization: principal })

const open = async (principal: string | undefined): Promise<string> => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const headers = { ...as(principal) }
  const reply = await send(front.url, { headers, body: { jsonrpc: '2.0', id: 0, method: 'initialize', params } })
  return String(reply.headers['mcp-session-id'])
}

/** The status of a ping in each session: 404 once it has ended. */
const pings = (principal: string | undefined, ids: readonly string[]): Promise<number[]> =>
  Promise.all(
    ids.map(async id => {
      const headers = { ...as(principal), 'mcp-session-id': id }
      return (await send(front.url, { headers, body: { jsonrpc: '2.0', id: 1, method: 'ping' } })).status
    }),
  )

test('a principal with too many sessions loses its least recently used, which then answers 404', async () => {
  await start(2)
  const other = await open('ben')
  const [one, two] = [await open('ana'), await open('ana')]
  const opened = Date.now()
  await vi.waitUntil(() => Date.now() > opened, { interval: 1 }) // within one millisecond, both are as old
  expect(await pings('ana', [one])).toEqual([200])
  const three = await open('ana')
  expect(await pings('ana', [one, two, three])).toEqual([200, 404, 200])
  expect(await pings('ben', [other])).toEqual([200])
  expect(front.sessions.size).toBe(3)
})

test('an idle session is evicted before one whose client listens', async () => {
  await start(2)
  const listening = await open('ana')
  const headers = { authorization: 'ana', 'mcp-session-id': listening, accept: 'text/event-stream' }
  const stream = await openStream(front.url, { method: 'GET', headers })
  const idle = await open('ana')
  await open('ana')
  expect(await pings('ana', [listening, idle])).toEqual([200, 404])
  stream.close()
})

test('the number of sessions stays bounded, however many are opened', async () => {
  await start(20)
  for (let i = 0; i < 100; i++) await open('ana')
  expect(front.sessions.size).toBe(20)
})

test('callers without a principal are counted by address', async () => {
  await start(2)
  const known = await open('ana')
  const ids = [await open(undefined), await open(undefined), await open(undefined)]
  expect(await pings(undefined, ids)).toEqual([404, 200, 200])
  expect(await pings('ana', [known])).toEqual([200])
})

test('a principal with too many channels loses its oldest, whose stream ends', async () => {
  await start(2)
  const url = `http://127.0.0.1:${front.port}/sse`
  const channel = (principal: string) => openRawChannel(url, { accept: 'text/event-stream', authorization: principal })
  const other = await channel('ben')
  const [first, second] = [await channel('ana'), await channel('ana')]
  const third = await channel('ana')
  await first.rest() // settles only because the stream has ended
  await expect.poll(() => front.channels.size).toBe(3)
  for (const open of [other, second, third]) {
    expect(open.response.complete).toBe(false)
    open.close()
  }
})

const listen = (principal: string) => {
  const { headers, body } = modern('l', 'subscriptions/listen', { notifications: {} })
  return openStream(front.url, { headers: { ...headers, authorization: principal }, body })
}

test('a principal with too many listen streams loses its oldest, which completes', async () => {
  const acknowledged = 'notifications/subscriptions/acknowledged'
  front = await startFront(
    { 'subscriptions/listen': ({ sink }) => sink({ kind: 'notice', method: acknowledged, params: Json.empty }) },
    { limits: { principalSessions: 2 }, identify: header => header },
  )
  const other = await listen('ben')
  const [first, second] = [await listen('ana'), await listen('ana')]
  const third = await listen('ana')
  expect((await first.all()).at(-1)?.json).toMatchObject({ id: 'l', result: { resultType: 'complete' } })
  expect(front.seen[1]?.signal.reason).toEqual({ kind: 'closing' })
  expect([0, 2, 3].map(i => front.seen[i]?.signal.reason)).toEqual([undefined, undefined, undefined])
  for (const stream of [other, second, third]) stream.close()
})
