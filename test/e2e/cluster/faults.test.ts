import { once } from 'node:events'
import { createConnection, createServer as createTcpServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { StateError } from '../../../src/stores/state/state-store.ts'
import { rpcInitialize, rpcNotification, rpcRequest } from '../../support/front.ts'
import { createTestLog } from '../../support/log.ts'
import { modern, openStream, type RawReply, send } from '../../support/raw.ts'
import { createReplicaServer } from '../../support/replica-server.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'

const JSON_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

let cluster: Awaited<ReturnType<typeof startReplicas>>
let home: TestReplica
let entry: TestReplica
let third: TestReplica
let id = ''
let calls: string[] = []
let log = createTestLog()

beforeEach(async () => {
  calls = []
  log = createTestLog()
  cluster = await startReplicas({ size: 3, server: at => createReplicaServer(at, calls), log: log.log })
  ;[home, entry, third] = cluster.replicas as [TestReplica, TestReplica, TestReplica]
  id = await open(home)
})
afterEach(() => cluster.close())

const open = async (at: TestReplica): Promise<string> =>
  String((await send(at.url, { body: rpcInitialize('2025-11-25') })).headers['mcp-session-id'])
const asSession = (headers: Record<string, string> = {}) => ({ 'mcp-session-id': id, ...headers })
const call = (name: string, number: number | string = 1) =>
  rpcRequest(number, 'tools/call', { name, arguments: {}, _meta: { progressToken: 'p' } })
const post = (at: TestReplica, body: object, headers?: Record<string, string>) =>
  send(at.url, { headers: asSession(headers), body })
const textIn = (json: { result?: Record<string, unknown> }): unknown =>
  (json.result?.content as { text: string }[] | undefined)?.[0]?.text
const where = async (at: TestReplica): Promise<unknown> => {
  const { status, json } = await post(at, call('where'))
  return status === 200 ? textIn(json) : status
}
const lost = (number: number | string) => ({
  id: number,
  error: { code: -32603, data: { reason: 'replica_lost' } },
})

/** Sends the rest of a request whose first line has been sent, and reads the whole answer. */
const rawAnswer = async (
  socket: Socket,
  url: string,
  body: object,
  headers: Readonly<Record<string, string>>,
): Promise<string> => {
  const text = JSON.stringify(body)
  const all = { ...JSON_HEADERS, host: new URL(url).host, 'content-length': Buffer.byteLength(text), ...headers }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`${lines.join('')}\r\n${text}`)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return answer
}

test('home killed before a call: the replica that is asked revives the session, and the others find it there', async () => {
  await home.kill()
  expect(await where(entry)).toBe('replica 1')
  expect(await where(third)).toBe('replica 1')
  expect(await where(entry)).toBe('replica 1')
})

test('home gone, and its lease has not ended yet: a refused connection ends it', async () => {
  await home.relay.stop()
  expect(await where(entry)).toBe('replica 1')
  expect(entry.store.members.all()).toHaveLength(3) // the former home still runs, under another name
  expect(await where(third)).toBe('replica 1')
})

test('many requests at once after a kill: one replica revives the session, and serves them all', async () => {
  await home.kill()
  const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => where(i % 2 === 0 ? entry : third)))
  expect(new Set(answers).size).toBe(1)
  expect(answers[0]).toMatch(/^replica [12]$/)
})

test('home killed during a call that has sent nothing: a typed error with its id, and no second execution', async () => {
  const answer = post(entry, call('silent', 'x'))
  await expect.poll(() => calls).toEqual(['silent 0'])
  await home.kill()
  const { status, json } = await answer
  expect([status, json]).toMatchObject([200, lost('x')])
  expect(await where(entry)).toBe('replica 1')
  expect(calls).toEqual(['silent 0', 'where 1'])
})

test('home killed during a stream: the client resumes anywhere, and gets a typed error', async () => {
  const stream = await openStream(entry.url, { headers: asSession(), body: call('slow', 7) })
  const progress = await stream.next()
  await home.kill()
  expect(await stream.all()).toEqual([])
  const headers = asSession({ accept: 'text/event-stream', 'last-event-id': String(progress?.id) })
  const resumed = await openStream(third.url, { method: 'GET', headers })
  const events = await resumed.all()
  expect(events.at(-1)?.json).toMatchObject({ id: 7, error: { code: -32603, data: { reason: 'gateway_restarted' } } })
})

test('home killed after a call: its answer stays, the next call is served elsewhere', async () => {
  expect(await where(entry)).toBe('replica 0')
  await home.kill()
  expect(await where(entry)).toBe('replica 1')
  expect((await send(third.url, { method: 'DELETE', headers: asSession() })).status).toBe(200)
  for (const at of [entry, third]) expect(await where(at)).toBe(404)
})

test('the GET stream of a killed home ends, and goes on elsewhere', async () => {
  const get = (at: TestReplica) =>
    openStream(at.url, { method: 'GET', headers: asSession({ accept: 'text/event-stream' }) })
  const stream = await get(entry)
  await home.kill()
  expect(await stream.all()).toEqual([])
  const again = await get(third)
  expect(again.status).toBe(200)
  again.close()
})

test('entry killed, home alive: nothing of the session is lost', async () => {
  expect(await where(entry)).toBe('replica 0')
  await entry.kill()
  expect(await where(third)).toBe('replica 0')
})

test('the address of a killed home belongs to another replica: that one is not meant', async () => {
  await home.relay.stop()
  const url = new URL(home.relay.url)
  const { address } = third.store.members.at(third.store.members.self) as { address: string }
  const target = new URL(address)
  // A new replica at the former address: here, a wire to the third one.
  const server = createTcpServer(near => {
    const far = createConnection(Number(target.port))
    near.pipe(far).pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
  })
  server.listen(Number(url.port), '127.0.0.1')
  await once(server, 'listening')
  expect(await where(entry)).toBe('replica 1')
  expect(calls).toEqual(['where 1'])
  server.close()
})

test('home hangs: what was sent there is lost when its lease ends, and it drops its sessions when it is back', async () => {
  const answer = post(entry, call('silent', 3))
  await expect.poll(() => calls).toEqual(['silent 0'])
  const former = home.store.members.self
  home.relay.pause()
  cluster.shared.lapse(former)
  expect((await answer).json).toMatchObject(lost(3))
  home.relay.resume()
  expect(home.store.members.self).not.toBe(former)
  expect(home.gateway.load().sessions).toBe(0)
  expect(await where(entry)).toBe('replica 1')
  expect(await where(home)).toBe('replica 1') // forwarded by the former home
})

test('home cannot be reached while it has a lease: 503, and the session stays', async () => {
  const { address } = home.store.members.at(home.store.members.self) as { address: string }
  await home.store.members.announce({ address: 'http://no-such-host.invalid:9', labels: [] })
  const answer = await post(entry, call('where'))
  expect([answer.status, answer.headers['retry-after']]).toEqual([503, '1'])
  expect(answer.json).toMatchObject({ error: { data: { reason: 'replica_unreachable' } } })
  await home.store.members.announce({ address, labels: [] })
  expect(await where(entry)).toBe('replica 0')
})

test('a planned stop: requests wait until its sessions can be taken, and none fails', async () => {
  await cluster.close()
  cluster = await startReplicas({ size: 3, server: at => createReplicaServer(at, calls), isDirect: true })
  ;[home, entry, third] = cluster.replicas as [TestReplica, TestReplica, TestReplica]
  id = await open(home)
  const answers: Promise<RawReply>[] = []
  const timer = setInterval(() => answers.push(post(answers.length % 2 ? entry : third, call('where'))), 5)
  await expect.poll(() => answers.length).toBeGreaterThan(5)
  await home.gateway.close()
  await home.store.close()
  const before = answers.length
  await expect.poll(() => answers.length).toBeGreaterThan(before + 5)
  clearInterval(timer)
  const texts = (await Promise.all(answers)).map(({ json, status }) => textIn(json) ?? { status, json })
  expect(texts.filter(text => typeof text !== 'string')).toEqual([])
  expect(texts.at(0)).toBe('replica 0')
  expect(texts.at(-1)).toMatch(/^replica [12]$/)
})

test('a planned stop of a replica that is never idle: calls that run end there, later ones elsewhere', async () => {
  await cluster.close()
  const limits = { shutdownMs: 8000 }
  cluster = await startReplicas({ size: 2, server: at => createReplicaServer(at, calls), isDirect: true, limits })
  ;[home, entry] = cluster.replicas as [TestReplica, TestReplica]
  id = await open(home)
  const answers: Promise<RawReply>[] = []
  const next = () => post(entry, rpcRequest(answers.length, 'tools/call', { name: 'silent', arguments: {} }))
  const timer = setInterval(() => answers.push(next()), 100)
  await expect.poll(() => calls.length).toBeGreaterThan(2)
  await home.gateway.close()
  clearInterval(timer)
  await home.store.close()
  const texts = (await Promise.all(answers)).map(({ text }) => /replica \d/.exec(text)?.[0] ?? text) // some are streams
  expect(new Set(texts)).toEqual(new Set(['replica 0', 'replica 1']))
})

test('a planned stop: requests on connections to it that stay open are served elsewhere, and none is refused', async () => {
  await cluster.close()
  const server = (at: number): ReturnType<typeof createReplicaServer> => {
    const made = createReplicaServer(at, calls)
    return { ...made, close: () => sleep(at === 0 ? 400 : 0).then(() => made.close()) } // as a process that ends slowly
  }
  cluster = await startReplicas({ size: 3, server, isDirect: true })
  ;[home, entry, third] = cluster.replicas as [TestReplica, TestReplica, TestReplica]
  id = await open(home)
  const other = await open(entry)
  const bodies = [
    { body: call('where'), headers: asSession() },
    { body: call('where'), headers: asSession({ 'mcp-session-id': other }) },
    modern(1, 'tools/call', { name: 'where', arguments: {} }),
  ]
  const kept = await Promise.all(
    [0, 1, 2, 3, 4, 5].map(async () => {
      const socket = createConnection(new URL(home.url).port as unknown as number, '127.0.0.1')
      await once(socket, 'connect')
      socket.write('POST /mcp HTTP/1.1\r\n') // busy, so that the stop does not close it
      return socket
    }),
  )
  await sleep(50)
  const closing = home.gateway.close()
  await sleep(200) // the server still ends
  const answers = await Promise.all(
    kept.map(async (socket, at) => {
      const { body, headers = {} } = bodies[at % 3] as (typeof bodies)[number]
      return rawAnswer(socket, home.url, body, headers)
    }),
  )
  await closing
  expect(answers.map(text => /replica \d/.exec(text)?.[0] ?? text)).toEqual(
    [0, 1, 2, 3, 4, 5].map(() => expect.stringMatching(/^replica [12]$/)),
  )
})

test('a slow reader stops the server behind two replicas, and nobody buffers what it does not read', async () => {
  const stream = await openStream(entry.url, { headers: asSession(), body: call('flood') })
  stream.response.pause()
  await vi.waitFor(
    async () => {
      const before = calls.length
      await new Promise(resolve => setTimeout(resolve, 300))
      expect(calls.length).toBe(before)
    },
    { timeout: 10_000 },
  )
  expect(calls.length).toBeGreaterThan(2)
  expect(calls.length).toBeLessThan(40)
  const before = calls.length
  stream.response.resume()
  await expect.poll(() => calls.length).toBeGreaterThan(before)
  stream.close()
})

const flip = (text: string, at: number): string =>
  text.slice(0, at) + (text[at] === '0' ? '1' : '0') + text.slice(at + 1)

test('forged, mutated, cut and foreign ids end at the entry with 404', async () => {
  const other = await startReplicas({ size: 1, server: at => createReplicaServer(at) })
  const foreign = await open(other.replicas[0] as TestReplica)
  await other.close()
  const ids = [foreign, flip(id, 0), flip(id, id.length - 1), flip(id, 40), id.slice(2), `${id}00`, 'x', '0'.repeat(99)]
  for (const forged of ids) {
    const { status } = await post(entry, call('where'), { 'mcp-session-id': forged })
    expect([forged, status]).toEqual([forged, 404])
  }
  expect(calls).toEqual([])
  expect(await where(entry)).toBe('replica 0')
})

test('a client cannot name its caller: the public port ignores the header, and the cluster port needs its seal', async () => {
  const headers = { 'dragoman-caller': 'forged', 'dragoman-replica': home.store.members.self }
  expect((await post(home, call('where'), headers)).status).toBe(200)
  expect((await post(entry, call('where'), headers)).status).toBe(200)
  for (const given of [{}, headers]) {
    const url = `${new URL(home.relay.url).origin}/mcp`
    const answer = await send(url, { headers: asSession(given), body: call('where') })
    expect(answer.status).toBe(403)
  }
  expect(log.lines.filter(({ fields }) => fields.security)).toHaveLength(2)
  expect(calls).toEqual(['where 0', 'where 0'])
})

test('a notification whose home is gone is served where the session is revived', async () => {
  await home.relay.stop()
  expect((await post(entry, rpcNotification('notifications/initialized'))).status).toBe(202)
  expect(await where(third)).toBe('replica 1')
})

test.each([
  ['is away when the home is found gone', () => home.relay.stop()],
  ['is away, and the home has no lease', async () => cluster.shared.kill(home.store.members.self)],
])('a request whose session cannot be looked up gets 503 with its id: the store %s', async (_, lose) => {
  await lose()
  entry.store.take = () => Promise.reject(new StateError('away', 'the test'))
  const { status, headers, json } = await post(entry, call('where', 7))
  expect([status, headers['retry-after']]).toEqual([503, '1'])
  expect(json).toMatchObject({ id: 7, error: { data: { reason: 'store_away' } } })
})
