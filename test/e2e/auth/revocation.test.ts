import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { modern, openSession, openStream, send } from '../../support/raw.ts'
import { type Created, type Guarded, openChannel, startGuarded } from './guarded.ts'

const gateways: Guarded[] = []
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const gateway of gateways.splice(0)) await gateway.close()
})
const start = async (): Promise<Guarded> => {
  const gateway = await startGuarded()
  gateways.push(gateway)
  return gateway
}

const PING = modern(1, 'tools/call', { name: 'example-ping', arguments: {} })

/** A connection of one client, with what has arrived on it. */
const connection = (gateway: Guarded) => {
  const socket = connect(gateway.gateway.port, '127.0.0.1')
  sockets.push(socket)
  let text = ''
  socket.on('data', chunk => {
    text += chunk
  })
  socket.on('error', () => {})
  const write = (verb: string, path: string, headers: Record<string, string>, body = '') => {
    const all = { host: '127.0.0.1', ...headers, ...(body && { 'content-length': String(Buffer.byteLength(body)) }) }
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
    socket.write(`${verb} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  }
  return {
    socket,
    saw: (what: string) => expect.poll(() => text).toContain(what),
    open: ({ headers }: Created) => write('GET', '/sse', { ...headers, accept: 'text/event-stream' }),
    ping: ({ headers }: Created) =>
      write(
        'POST',
        '/mcp',
        { ...PING.headers, ...headers, 'content-type': 'application/json' },
        JSON.stringify(PING.body),
      ),
  }
}

const isClosed = (socket: Socket): Promise<unknown> => (socket.closed ? Promise.resolve() : once(socket, 'close'))

describe('a token that is revoked', () => {
  it('ends its stream, though a request with another token was pipelined behind it', async () => {
    const gateway = await start()
    const [one, two] = [await gateway.create(), await gateway.create()]
    const { socket, saw, open, ping } = connection(gateway)
    open(one)
    await saw('event: endpoint')
    ping(two)
    await expect.poll(() => gateway.gateway.load().channels).toBe(1)
    await gateway.revoke(one)
    await isClosed(socket)
    await expect.poll(() => gateway.gateway.load().channels).toBe(0)
  })

  it('leaves a stream of another token alone on a connection that both have used, as proxies do', async () => {
    const gateway = await start()
    const [one, two] = [await gateway.create(), await gateway.create()]
    const { socket, saw, open, ping } = connection(gateway)
    ping(one)
    await saw('pong')
    open(two)
    await saw('event: endpoint')
    await gateway.revoke(one)
    expect((await send(gateway.url, { ...PING, headers: { ...PING.headers, ...one.headers } })).status).toBe(401)
    expect([socket.destroyed, gateway.gateway.load().channels]).toEqual([false, 1])
    await gateway.revoke(two)
    await isClosed(socket)
  })

  it('ends the sessions it has opened, and not those of other tokens', async () => {
    const gateway = await start()
    const [one, two] = [await gateway.create({ principal: 'ada' }), await gateway.create({ principal: 'ada' })]
    const first = await openSession(gateway.url, '2025-11-25', {}, one.headers)
    const second = await openSession(gateway.url, '2025-11-25', {}, two.headers)
    expect(gateway.gateway.load().sessions).toBe(2)
    await gateway.revoke(one)
    expect(gateway.gateway.load().sessions).toBe(1)
    const list = { jsonrpc: '2.0', id: 2, method: 'tools/list' }
    const ask = (headers: object) => send(gateway.url, { body: list, headers: { ...headers, ...two.headers } })
    expect([(await ask(first.headers)).status, (await ask(second.headers)).status]).toEqual([404, 200])
  })
})

describe('the first token', () => {
  it('ends the streams, channels and sessions that were opened before it', async () => {
    const gateway = await start()
    const listen = modern(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    const stream = await openStream(gateway.url, listen)
    expect((await stream.next())?.json.method).toBe('notifications/subscriptions/acknowledged')
    const channel = await openChannel(gateway.origin, { authorization: '' })
    const closed = new Promise(resolve => channel.once('close', resolve))
    await openSession(gateway.url)
    await gateway.create()
    expect(await stream.next()).toBeUndefined()
    await closed
    await expect.poll(() => gateway.gateway.load()).toMatchObject({ sessions: 0, channels: 0, calls: 0 })
  })

  it('leaves those alone that were opened with the secret of the process', async () => {
    const gateway = await start()
    const headers = { authorization: `Bearer ${gateway.gateway.localSecret}` }
    const channel = await openChannel(gateway.origin, headers)
    await openSession(gateway.url, '2025-11-25', {}, headers)
    await gateway.create()
    expect((await send(gateway.url, PING)).status).toBe(401)
    expect(gateway.gateway.load()).toMatchObject({ sessions: 1, channels: 1 })
    channel.destroy()
  })
})
