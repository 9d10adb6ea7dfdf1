import { afterEach, expect, test } from 'vitest'
import { openChannel } from '../../../test/support/channel.ts'
import { type Front, type Script, startFront } from '../../../test/support/front.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'

let front: Front
let origin: string

const start = async (script: Script = {}, options?: Parameters<typeof startFront>[1]): Promise<void> => {
  front = await startFront(script, options)
  origin = `http://127.0.0.1:${front.port}`
}

afterEach(() => front.close())

const answer = (exchange: Exchange) => exchange.sink({ kind: 'result', result: Json.of({ content: [] }) })
const request = (id: number | string, method = 'tools/call', params: object = { name: 'echo' }) => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
})
const last = (method: string): Exchange => front.seen.filter(exchange => exchange.method === method).at(-1) as Exchange

/** Waits until a request of that method has come through `times` times. */
const seen = async (method: string, times = 1): Promise<Exchange> => {
  await expect.poll(() => front.seen.filter(exchange => exchange.method === method).length).toBe(times)
  return last(method)
}

const MEGABYTE = 'x'.repeat(1024 * 1024)
const chatter = (exchange: Exchange, data: string): void | Promise<void> =>
  exchange.sink({ kind: 'notice', method: 'notifications/message', params: Json.of({ level: 'info', data }) })

test('a reader that does not read is waited for, and everything arrives when it does', async () => {
  await start({ 'tools/call': () => {} })
  const channel = await openChannel(`${origin}/sse`)
  await channel.post(request(1))
  const call = await seen('tools/call')
  channel.response.pause()
  let waited: Promise<void> | undefined
  for (let i = 0; i < 30 && !waited; i++) waited = chatter(call, MEGABYTE) as Promise<void> | undefined
  expect(waited).toBeInstanceOf(Promise)
  const progress = (n: number) =>
    call.sink({ kind: 'notice', method: 'notifications/progress', params: Json.of({ progressToken: 1, progress: n }) })
  for (let n = 0; n < 1000; n++) void progress(n)
  expect(front.context.retention.bytes).toBeGreaterThan(0)
  channel.response.resume()
  await waited
  void answer(call)
  const progresses: unknown[] = []
  for (let message = await channel.message(); message.id !== 1; message = await channel.message())
    if (message.method === 'notifications/progress') progresses.push(message.params?.progress)
  expect(progresses).toEqual([999]) // those that nobody took gave way to the newest
  expect(front.context.retention.bytes).toBe(0)
})

test('a reader too far behind is told so and sent away; what it had in flight ends', async () => {
  await start({ 'tools/call': () => {} }, { limits: { streamLogBytes: 3 * 1024 * 1024 } })
  const channel = await openChannel(`${origin}/sse?events=lifecycle`)
  await channel.post(request(1))
  const call = await seen('tools/call')
  channel.response.pause()
  for (let i = 0; i < 100 && !call.signal.reason; i++) void chatter(call, MEGABYTE)
  expect(call.signal.reason).toEqual({ kind: 'gone' })
  expect((await channel.post(request(2))).status).toBe(404)
  channel.response.resume()
  const events = (await channel.rest()).filter(({ event }) => event !== 'message')
  expect(events.map(({ event }) => event)).toEqual(['error', 'lifecycle'])
  expect(events[0]?.data).toContain('too far behind')
  await expect.poll(() => [front.channels.size, front.context.retention.bytes]).toEqual([0, 0])
})

test('a reader that takes nothing at all is dropped', async () => {
  await start({ 'tools/call': () => {} }, { limits: { stallMs: 100, streamLogBytes: 2 ** 30 } })
  const channel = await openChannel(`${origin}/sse`)
  await channel.post(request(1))
  const call = await seen('tools/call')
  channel.response.pause()
  for (let i = 0; i < 30; i++) void chatter(call, MEGABYTE)
  await expect.poll(() => call.signal.reason).toEqual({ kind: 'gone' })
  expect([front.channels.size, front.context.retention.bytes, front.context.activeCalls.size]).toEqual([0, 0, 0])
})
