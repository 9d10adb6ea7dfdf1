import { afterEach, expect, it } from 'vitest'
import { answerOk, type ChannelHabits, channelServer, connectTo } from '../../../test/support/channel-server.ts'
import { callerOf, exchangeWith, failure } from '../../../test/support/scripted-server.ts'
import { Json } from '../../wire/json/json.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const healthCheck = callerOf({ principal: undefined, workspace: '', isHealthCheck: true })
const capabilities = Json.of({ elicitation: {} })
const caller = callerOf({ revision: '2025-11-25', session: 'client-1', capabilities })

/** A server with a single session, as server-everything 0.6.2: it is gone when its channel closes. */
const start = async (habits: ChannelHabits = {}, idleMs = 60_000) => {
  const server = await channelServer(answerOk, {
    ...habits,
    get: (_, response) => {
      if (server.of('GET').length > 1) return Boolean(response.destroy())
      response.on('close', () => server.become((_, response) => void response.destroy()))
      return false
    },
  })
  const upstream = connectTo(server, closing, { type: 'sse' }, { idleMs })
  const check = async () => {
    const peer = await upstream.open(healthCheck)
    expect(await exchangeWith(peer, 'tools/list').result()).toEqual({ ok: true })
    await new Promise(resolve => setImmediate(resolve)) // its session ends when nothing is under way
  }
  return { server, upstream, check }
}

it('a health check does not end a server that exits when its channel closes: the first caller gets the channel', async () => {
  const { server, upstream, check } = await start()
  await check()
  await check()
  const peer = await upstream.open(caller)
  expect(await exchangeWith(peer, 'tools/call', { caller }).result()).toEqual({ ok: true })
  expect(server.of('GET')).toHaveLength(1)
  const offers = server.of('initialize').map(({ body }) => body.params?.capabilities)
  expect(offers).toEqual([{}, {}, { elicitation: {} }])
  const ids = server.arrivals.flatMap(({ body }) => (body.method && body.id !== undefined ? [body.id] : []))
  expect(new Set(ids).size).toBe(ids.length)
})

it('a kept channel is closed after a while, and with the gateway', async () => {
  const idle = await start({}, 50)
  await idle.check()
  await idle.server.until(() => idle.server.of('GET')[0]?.isGone === true, 'the end of the channel')
  const closed = await start()
  await closed.check()
  expect(closed.server.of('GET')[0]?.isGone).toBe(false)
  await closed.upstream.close()
  await closed.server.until(() => closed.server.of('GET')[0]?.isGone === true, 'the end of the channel')
})

it('a server that accepts one handshake per channel gets another channel', async () => {
  const server = await channelServer((arrived, channel, response) => answerOk(arrived, channel, response))
  const upstream = connectTo(server, closing, { type: 'sse' })
  await exchangeWith(await upstream.open(healthCheck), 'tools/list').result()
  await new Promise(resolve => setImmediate(resolve))
  const [kept] = server.streams
  const before = server.of('initialize').length
  const answer = kept?.event.bind(kept)
  if (!kept || !answer) throw new Error('no channel')
  Object.assign(kept, {
    event: (message: { id?: unknown; result?: unknown }) =>
      answer(message.result ? failure(message.id, -32600, 'already initialized') : message),
  })
  const peer = await upstream.open(caller)
  expect(await exchangeWith(peer, 'tools/call', { caller }).result()).toEqual({ ok: true })
  expect(server.of('GET')).toHaveLength(2)
  expect(server.of('initialize').length).toBeGreaterThan(before + 1)
})

it('a second caller of a server with one channel gets the failure of the channel, not that of the probe', async () => {
  const server = await channelServer(answerOk, {
    get: (_, response) => {
      if (server.of('GET').length > 1) response.writeHead(409, { 'content-type': 'text/plain' }).end('only one channel')
      return server.of('GET').length > 1
    },
  })
  const upstream = connectTo(server, closing)
  await upstream.open(caller)
  const second = upstream.open({ ...caller, session: 'client-2' })
  await expect(second).rejects.toThrow(/409.*only one channel/)
})
