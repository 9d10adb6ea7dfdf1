import { Writable } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import { openChannel } from '../../../test/support/channel.ts'
import { answerEmpty, type Front, rpcRequest, startFront } from '../../../test/support/front.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { EventOutbox } from './outbox.ts'

let front: Front
const start = async (...args: Parameters<typeof startFront>): Promise<void> => {
  front = await startFront(...args)
}

afterEach(() => front.close())

const MEGABYTE = 'x'.repeat(1024 * 1024)
const chatter = (exchange: Exchange, data: string): void | Promise<void> =>
  exchange.sink({ kind: 'notice', method: 'notifications/message', params: Json.of({ level: 'info', data }) })

test('a client that does not read applies backpressure, and gets everything when it reads again', async () => {
  await start({ 'tools/call': () => {} })
  const channel = await openChannel(`${front.origin}/sse`)
  await channel.post(rpcRequest(1))
  const call = await front.whenSeen('tools/call')
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
  void answerEmpty(call)
  const progresses: unknown[] = []
  for (let message = await channel.message(); message.id !== 1; message = await channel.message())
    if (message.method === 'notifications/progress') progresses.push(message.params?.progress)
  expect(progresses).toEqual([999]) // the newest replaced those that waited
  expect(front.context.retention.bytes).toBe(0)
})

test('a client too far behind gets an error event and its channel ends, with its calls', async () => {
  await start({ 'tools/call': () => {} }, { limits: { streamLogBytes: 3 * 1024 * 1024 } })
  const channel = await openChannel(`${front.origin}/sse?events=lifecycle`)
  await channel.post(rpcRequest(1))
  const call = await front.whenSeen('tools/call')
  channel.response.pause()
  for (let i = 0; i < 100 && !call.signal.reason; i++) void chatter(call, MEGABYTE)
  expect(call.signal.reason).toEqual({ kind: 'gone' })
  expect((await channel.post(rpcRequest(2))).status).toBe(404)
  channel.response.resume()
  const events = (await channel.rest()).filter(({ event }) => event !== 'message')
  expect(events.map(({ event }) => event)).toEqual(['error', 'lifecycle'])
  expect(events[0]?.data).toContain('too far behind')
  await expect.poll(() => [front.channels.size, front.context.retention.bytes]).toEqual([0, 0])
})

test('a client that reads nothing at all is disconnected', async () => {
  await start({ 'tools/call': () => {} }, { limits: { stallMs: 100, streamLogBytes: 2 ** 30 } })
  const channel = await openChannel(`${front.origin}/sse`)
  await channel.post(rpcRequest(1))
  const call = await front.whenSeen('tools/call')
  channel.response.pause()
  for (let i = 0; i < 30; i++) void chatter(call, MEGABYTE)
  await expect.poll(() => call.signal.reason).toEqual({ kind: 'gone' })
  expect([front.channels.size, front.context.retention.bytes, front.context.activeCalls.size]).toEqual([0, 0, 0])
})

test('a client that does not read gets no keep-alive comments', async () => {
  await start()
  const output = new Writable({ highWaterMark: 1, write: () => {} }) // full after the first write
  const outbox = new EventOutbox(output, front.context, 'owner')
  void outbox.send('message', [Buffer.from('{}')])
  outbox.keepAlive()
  expect([outbox.bytes, front.context.retention.bytes]).toEqual([0, 0])
  outbox.closed()
})
