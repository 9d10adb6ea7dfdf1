import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type Server,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { SILENT } from '../../telemetry/log.ts'
import { ActiveCalls } from '../http/active-calls.ts'
import type { FrontRequest } from '../http/front-request.ts'
import { CallerSeal } from './caller-seal.ts'
import { Forwarder } from './forwarder.ts'
import { createRequestRouter, type Location } from './route-request.ts'

const KEY = randomBytes(32)
const MARKED = { 'dragoman-replica': 'home' }
const MIB = 1024 * 1024

const listenLocally = async (server: Server | TcpServer): Promise<number> => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const closed = (server: Server): Promise<void> =>
  new Promise(resolve => {
    server.close(() => resolve())
    server.closeAllConnections()
  })

interface EntryOptions {
  readonly port: number // of the home
  readonly locations?: readonly Location[] // the second is used after the home was found gone, and so on
}

/** An entry whose sessions all live at one home. */
const startEntry = async ({ port, locations = [{ kind: 'elsewhere', home: 'home' }] }: EntryOptions) => {
  const forwarder = new Forwarder({ seal: new CallerSeal([KEY]), log: SILENT })
  const dead = new Set<string>()
  const reportDead = vi.fn(async (replica: string) => void dead.add(replica))
  let located = 0
  const router = createRequestRouter({
    isHere: () => false,
    successor: () => undefined,
    locate: () => locations[Math.min(located++, locations.length - 1)] as Location,
    members: {
      self: 'entry',
      at: replica =>
        dead.has(replica) ? undefined : { replica, address: `http://127.0.0.1:${port}`, labels: [], version: 1 },
      reportDead,
    },
    forwarder,
    activeCalls: new ActiveCalls(10),
    bodyBytes: 64 * MIB,
    log: SILENT,
  })
  const entry = createServer((raw, response) => {
    const about = { workspace: 'default', principal: 'ana', policyName: 'p', acceptsJson: true, acceptsSse: true }
    const front: FrontRequest = { raw, response, ...about }
    const found = router.find(front)
    if (!found) return void response.end('not found')
    void router.route(front, found, body => void response.end(`here: ${body ?? ''}`))
  })
  const entryPort = await listenLocally(entry)
  onTestFinished(async () => {
    await forwarder.close()
    await closed(entry)
  })
  return { url: `http://127.0.0.1:${entryPort}/mcp`, entry, forwarder, reportDead }
}

/** A home that answers with this handler, and an entry before it. */
const startPair = async (handler: RequestListener, locations?: readonly Location[]) => {
  const home = createServer(handler)
  const port = await listenLocally(home)
  onTestFinished(() => closed(home))
  return { home, ...(await startEntry(locations ? { port, locations } : { port })) }
}

/** A promise that is resolved from outside. */
const latch = () => {
  let open = (): void => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  return { opened, open: () => open() }
}

const headers = { 'mcp-session-id': 'id', 'content-type': 'application/json' }
const post = (url: string, body: unknown) => fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: {} }
const read = async (raw: IncomingMessage): Promise<string> => Buffer.concat(await raw.toArray()).toString()

test('the request arrives as it was sent, with its caller, and the response as it was given', async () => {
  let seen: Record<string, unknown> = {}
  const { url, forwarder } = await startPair(async (raw, response) => {
    const caller = new CallerSeal([KEY]).open(String(raw.headers['dragoman-caller']), 'home', Date.now())
    seen = {
      url: raw.url,
      body: await read(raw),
      caller,
      secret: raw.headers.authorization,
      param: raw.headers['mcp-param-x'],
    }
    response.writeHead(207, { ...MARKED, 'content-type': 'application/json', 'x-any': 'some', 'content-length': 2 })
    response.end('{}')
  })
  const answer = await fetch(`${url}/work?x=%20`, {
    method: 'POST',
    headers: { ...headers, authorization: 'Bearer secret', 'dragoman-caller': 'forged', 'mcp-param-x': 'é' },
    body: JSON.stringify(call),
  })
  expect([answer.status, await answer.text()]).toEqual([207, '{}'])
  expect(answer.headers.get('x-any')).toBe('some')
  expect(answer.headers.get('dragoman-replica')).toBeNull()
  expect(seen).toEqual({
    url: '/mcp/work?x=%20',
    body: JSON.stringify(call),
    caller: {
      kind: 'valid',
      caller: { workspace: 'default', principal: 'ana', policyName: 'p', address: '127.0.0.1' },
    },
    secret: undefined,
    param: 'é',
  })
  expect(forwarder.size).toBe(0)
})

test('connections are kept for the next request', async () => {
  const ports = new Set<number | undefined>()
  const { url } = await startPair((raw, response) => {
    ports.add(raw.socket.remotePort)
    response.writeHead(202, MARKED).end()
  })
  for (let i = 0; i < 10; i++) expect((await post(url, call)).status).toBe(202)
  expect(ports.size).toBe(1)
})

test('events arrive while the stream is open, and keep-alive comments too', async () => {
  let stream: ServerResponse | undefined
  const { url } = await startPair((_, response) => {
    stream = response
    response.writeHead(200, { ...MARKED, 'content-type': 'text/event-stream' }).flushHeaders()
  })
  const answer = await fetch(url, { headers })
  expect(answer.headers.get('content-type')).toBe('text/event-stream') // before the first event
  const reader = answer.body?.getReader()
  for (const text of [': \n\n', 'data: 1\n\n', ': \n\n', 'data: 2\n\n']) {
    stream?.write(text)
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe(text)
  }
  stream?.end()
  expect((await reader?.read())?.done).toBe(true)
})

test('a client that leaves is noticed at the home', async () => {
  const gone = latch()
  const { url, forwarder } = await startPair((_, response) => {
    response.writeHead(200, { ...MARKED, 'content-type': 'text/event-stream' }).flushHeaders()
    response.on('close', () => gone.open())
  })
  const leave = new AbortController()
  await fetch(url, { headers, signal: leave.signal })
  leave.abort()
  await gone.opened
  await vi.waitFor(() => expect(forwarder.size).toBe(0))
})

test('a client that leaves before the answer is noticed at the home', async () => {
  const [arrived, gone] = [latch(), latch()]
  const { url } = await startPair((_, response) => {
    response.on('close', () => gone.open())
    arrived.open()
  })
  const leave = new AbortController()
  const answer = fetch(url, { method: 'POST', headers, body: '{}', signal: leave.signal })
  await arrived.opened
  leave.abort()
  await expect(answer).rejects.toThrow()
  await gone.opened
})

test('40 MiB go through', async () => {
  const large = randomBytes(40 * MIB)
  const { url } = await startPair((_, response) => {
    response.writeHead(200, { ...MARKED, 'content-length': large.length })
    response.end(large)
  })
  const body = Buffer.from(await (await post(url, call)).arrayBuffer())
  const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
  expect(hash(body)).toBe(hash(large))
})

test('a request of 20 MiB goes through', async () => {
  const { url } = await startPair(async (raw, response) => {
    response.writeHead(200, MARKED).end(String((await read(raw)).length))
  })
  const body = { ...call, params: { x: 'x'.repeat(20 * MIB) } }
  expect(await (await post(url, body)).text()).toBe(String(JSON.stringify(body).length))
})

test('a client that reads nothing stops the home: little is buffered between them', async () => {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  let written = 0
  let stalls = 0
  const { url, entry } = await startPair((_, response) => {
    response.writeHead(200, { ...MARKED, 'content-type': 'text/event-stream' })
    const fill = () => {
      do written += chunk.length
      while (response.write(chunk))
      stalls++
    }
    response.on('drain', fill)
    fill()
  })
  const client = request(url, { headers })
  client.end()
  const [answer] = (await once(client, 'response')) as [IncomingMessage]
  answer.pause()
  await vi.waitFor(async () => {
    const before = stalls
    await new Promise(resolve => setTimeout(resolve, 200))
    expect(stalls).toBe(before) // nothing moves any more
  })
  expect(written).toBeLessThan(24 * MIB) // mostly in the sockets of the system
  const held = await new Promise<number>(resolve => entry.getConnections((_, count) => resolve(count)))
  expect(held).toBe(1)
  const before = written
  answer.resume()
  await vi.waitFor(() => expect(written).toBeGreaterThan(before + 4 * MIB))
  client.destroy()
})

const refusedPort = async (): Promise<number> => {
  const server = createServer()
  const port = await listenLocally(server)
  await closed(server)
  return port
}

const THEN_HERE: readonly Location[] = [{ kind: 'elsewhere', home: 'home' }, { kind: 'here' }]

test('a home that refuses the connection is reported, and the request served here, with its body', async () => {
  const { url, reportDead } = await startEntry({ port: await refusedPort(), locations: THEN_HERE })
  expect(await (await post(url, call)).text()).toBe(`here: ${JSON.stringify(call)}`)
  expect(reportDead.mock.calls).toEqual([['home']])
})

test('so is one whose address belongs to another replica now', async () => {
  const { url, reportDead } = await startPair((_, response) => response.writeHead(421).end(), THEN_HERE)
  expect(await (await post(url, call)).text()).toBe(`here: ${JSON.stringify(call)}`)
  expect(reportDead.mock.calls).toEqual([['home']])
})

test('a session that another replica has taken is forwarded there', async () => {
  const taken: readonly Location[] = [
    { kind: 'elsewhere', home: 'former' },
    { kind: 'elsewhere', home: 'home' },
  ]
  const { url } = await startPair((raw, response) => {
    const { kind } = new CallerSeal([KEY]).open(String(raw.headers['dragoman-caller']), 'home', Date.now())
    if (kind === 'misdirected') response.writeHead(421).end()
    else response.writeHead(200, MARKED).end(kind)
  }, taken)
  expect(await (await post(url, call)).text()).toBe('valid')
  expect(await (await post(url, call)).text()).toBe('valid') // remembered
})

test.each([200, 404, 500])('another program at the address of the home (HTTP %i) is not believed', async status => {
  const { url, reportDead } = await startPair((_, response) => response.writeHead(status).end('hello'))
  const answer = await post(url, call)
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await answer.json()).toMatchObject({ error: { code: -32603, data: { reason: 'replica_unreachable' } } })
  expect(reportDead).not.toHaveBeenCalled()
})

test('a home whose clock differs is asked again, with its time', async () => {
  const aheadMs = 3_600_000
  let count = 0
  const { url } = await startPair((raw, response) => {
    const now = Date.now() + aheadMs
    const { kind } = new CallerSeal([KEY]).open(String(raw.headers['dragoman-caller']), 'home', now)
    count++
    if (kind === 'expired') response.writeHead(403, { 'dragoman-clock': String(now) }).end()
    else response.writeHead(200, MARKED).end(kind)
  })
  for (let i = 0; i < 3; i++) expect(await (await post(url, call)).text()).toBe('valid')
  expect(count).toBe(4)
})

const lost = (id: unknown) => ({ jsonrpc: '2.0', id, error: { code: -32603, data: { reason: 'replica_lost' } } })

test('a home that breaks off before it answers: the error has the id, and nothing is sent again', async () => {
  let count = 0
  const { url, reportDead } = await startPair((_, response) => {
    count++
    response.destroy()
  })
  const answer = await post(url, call)
  expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ id: 7 })])
  expect(await (await post(url, call)).json()).toMatchObject(lost(7))
  expect(await (await post(url, [call, { ...call, id: 'b' }])).json()).toMatchObject([lost(7), lost('b')])
  const notified = await post(url, { jsonrpc: '2.0', method: 'notifications/cancelled' })
  expect([notified.status, await notified.json()]).toMatchObject([502, lost(null)])
  const message = await fetch(url.replace('mcp', 'messages/?session_id=x'), { method: 'POST', headers, body: '{}' })
  expect(message.status).toBe(502)
  expect(count).toBe(5)
  expect(reportDead).not.toHaveBeenCalled()
})

test('a stream that breaks before its first event ends with the error, later it is cut off', async () => {
  const events = ['', ': \n\n', 'id: 1\ndata: {}\n\n']
  const { url } = await startPair((_, response) => {
    response.writeHead(200, { ...MARKED, 'content-type': 'text/event-stream' })
    response.write(`: \n\n${events.shift()}`, () => setImmediate(() => response.destroy()))
  })
  for (let i = 0; i < 2; i++) {
    const text = await (await post(url, call)).text()
    const [, data = ''] = /\n\nevent: message\ndata: (.*)\n\n$/.exec(text) ?? []
    expect(JSON.parse(data)).toMatchObject(lost(7))
  }
  const cut = await post(url, call)
  await expect(cut.text()).rejects.toThrow()
})

test('a GET that breaks is sent again', async () => {
  let count = 0
  const { url } = await startPair((_, response) => {
    if (count++ === 0) response.destroy()
    else response.writeHead(200, MARKED).end('stream')
  })
  expect(await (await fetch(url, { headers })).text()).toBe('stream')
})

test('a home that hangs: when its lease ends, what was sent there is lost', async () => {
  const server = createTcpServer() // accepts, and never answers
  const port = await listenLocally(server)
  const accepted = once(server, 'connection')
  const { url, forwarder } = await startEntry({ port })
  const answer = post(url, call)
  await accepted
  await vi.waitFor(() => expect(forwarder.size).toBe(1))
  forwarder.cut('other')
  await new Promise(resolve => setTimeout(resolve, 20))
  expect(forwarder.size).toBe(1)
  forwarder.cut('home')
  expect(await (await answer).json()).toMatchObject(lost(7))
  server.close()
})

test('a call whose stream ends with the entry gets an error, if its client could not resume it', async () => {
  const { url, forwarder } = await startPair((_, response) => {
    response.writeHead(200, { ...MARKED, 'content-type': 'text/event-stream' })
    response.write(': wait\n\n')
  })
  const answer = await post(url, call)
  forwarder.endStreams()
  expect(await answer.text()).toMatch(/data: .*"id":7,"error":.*"reason":"replica_lost"/)
})
