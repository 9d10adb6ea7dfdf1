import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { changeSharedTokens } from '../../../src/auth/shared-tokens.ts'
import { CallerSeal, type ForwardedCaller } from '../../../src/fronts/cluster/caller-seal.ts'
import { rpcInitialize, rpcRequest } from '../../support/front.ts'
import { createTestLog } from '../../support/log.ts'
import { openStream, send } from '../../support/raw.ts'
import { createReplicaServer } from '../../support/replica-server.ts'
import { startReplicas, type TestReplica } from '../../support/replicas.ts'
import { createToken, newDataDirectory } from '../auth/guarded.ts'

const call = rpcRequest(1, 'tools/call', { name: 'where', arguments: {} })

const start = async (more: Partial<Parameters<typeof startReplicas>[0]> = {}) => {
  const log = createTestLog()
  const cluster = await startReplicas({ size: 2, server: at => createReplicaServer(at), log: log.log, ...more })
  onTestFinished(() => cluster.close())
  const [home, entry] = cluster.replicas as [TestReplica, TestReplica]
  return { cluster, home, entry, log }
}

const startWithTokens = async (limits = {}) => {
  const data = await newDataDirectory()
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const [ana, ben] = [await createToken(data), await createToken(data, { policy: 'nothing' })]
  return { ana, ben, ...(await start({ data, limits })) }
}

const open = async (at: TestReplica, headers: Record<string, string> = {}): Promise<string> =>
  String((await send(at.url, { headers, body: rpcInitialize('2025-11-25') })).headers['mcp-session-id'])

test('the home knows the principal: a session id is of no use to another one', async () => {
  const { ana, ben, home, entry, log } = await startWithTokens()
  const id = await open(home, ana.headers)
  const post = (headers: object) => send(entry.url, { headers: { 'mcp-session-id': id, ...headers }, body: call })
  expect((await post(ana.headers)).json.result).toBeDefined()
  expect((await post(ben.headers)).status).toBe(404)
  expect(log.lines).toContainEqual(
    expect.objectContaining({ fields: expect.objectContaining({ security: true, principal: ben.id, owner: ana.id }) }),
  )
  expect((await post({})).status).toBe(401)
  expect((await post(ana.headers)).json.result).toBeDefined()
})

test('the policy of a token holds for its sessions at other replicas', async () => {
  const { ben, home, entry } = await startWithTokens()
  const id = await open(home, ben.headers)
  const headers = { 'mcp-session-id': id, ...ben.headers }
  expect((await send(entry.url, { headers, body: call })).json.error).toBeDefined()
  const { json } = await send(entry.url, { headers, body: rpcRequest(2, 'tools/list', {}) })
  expect(json.result).toMatchObject({ tools: [] })
})

test('a revoked token ends what its caller has open at any replica', async () => {
  const { ana, home, entry } = await startWithTokens()
  const id = await open(home, ana.headers)
  const headers = { 'mcp-session-id': id, accept: 'text/event-stream', ...ana.headers }
  const stream = await openStream(entry.url, { method: 'GET', headers })
  expect(stream.status).toBe(200)
  await changeSharedTokens(home.store.shared, tokens => tokens.filter(token => token.id !== ana.id))
  await stream.all()
  expect((await send(entry.url, { headers, body: call })).status).toBe(401)
})

test('a forwarded request counts once for the rate of its caller', async () => {
  const { ana, home, entry } = await startWithTokens({ rate: { perPrincipal: { perSecond: 6, burst: 1 } } })
  const id = await open(home, ana.headers)
  const headers = { 'mcp-session-id': id, ...ana.headers }
  const statuses = []
  for (let i = 0; i < 5; i++) statuses.push((await send(entry.url, { headers, body: call })).status)
  expect(statuses).toEqual([200, 200, 200, 200, 200])
})

test('a body beyond the limit ends at the entry', async () => {
  const { home, entry } = await start({ limits: { bodyBytes: 1000 } })
  const headers = { 'mcp-session-id': await open(home) }
  const large = { ...call, params: { name: 'where', arguments: { x: 'x'.repeat(2000) } } }
  expect((await send(entry.url, { headers, body: large })).status).toBe(413)
  expect((await send(entry.url, { headers, body: call })).status).toBe(200)
})

test('a page in a browser may read what another replica answers', async () => {
  const { home, entry } = await start()
  const headers = { 'mcp-session-id': await open(home), origin: 'http://localhost:3000' }
  const answer = await send(entry.url, { headers, body: call })
  expect(answer.status).toBe(200)
  expect(answer.headers['access-control-allow-origin']).toBe('http://localhost:3000')
  expect((await send(entry.url, { headers: { ...headers, origin: 'https://evil.example' }, body: call })).status).toBe(
    403,
  )
})

test('sealed callers that are forged, foreign, replayed or changed open nothing', async () => {
  const { cluster, home, entry } = await start()
  const id = await open(home)
  const caller: ForwardedCaller = {
    workspace: 'default',
    principal: 'local',
    policyName: undefined,
    address: undefined,
  }
  const seal = (to: string, now: number, about = caller) => new CallerSeal(cluster.keys.callers).seal(about, to, now)
  const post = async (sealed: string) => {
    const headers = { 'mcp-session-id': id, 'dragoman-caller': sealed }
    return (await send(`${new URL(home.relay.url).origin}/mcp`, { headers, body: call })).status
  }
  const { self } = home.store.members
  const valid = seal(self, Date.now())
  expect(await post(valid)).toBe(200)
  expect(await post(seal(self, Date.now() - 10_001))).toBe(403)
  expect(await post(seal(self, Date.now() + 60_000))).toBe(403)
  expect(await post(seal(entry.store.members.self, Date.now()))).toBe(421)
  expect(await post(seal(self, Date.now(), { ...caller, workspace: 'other' }))).toBe(403)
  expect(await post(seal(self, Date.now(), { ...caller, principal: 'other' }))).toBe(404)
  expect(await post(`${valid.slice(0, -1)}${valid.endsWith('A') ? 'B' : 'A'}`)).toBe(403)
  expect(await post(`${valid}, ${valid}`)).toBe(403)
  expect(await post(id)).toBe(403)
})

/** Certificates of two authorities, made with openssl. */
const createCertificates = async (folder: string) => {
  const run = (...args: string[]) => promisify(execFile)('openssl', args, { cwd: folder })
  for (const name of ['ca', 'foreign'])
    await run(
      ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'.split(' '),
      ...['-keyout', `${name}.key`, '-out', `${name}.pem`, '-subj', `/CN=${name}`],
    )
  await run(
    ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -CA ca.pem -CAkey ca.key'.split(' '),
    ...['-keyout', 'replica.key', '-out', 'replica.pem', '-subj', '/CN=replica'],
    ...['-addext', 'subjectAltName=IP:127.0.0.1', '-addext', 'basicConstraints=critical,CA:FALSE'],
  )
  const file = (name: string) => join(folder, name)
  return { cert: file('replica.pem'), key: file('replica.key'), ca: file('ca.pem') }
}

test('with certificates the replicas prove to each other who they are', async () => {
  const folder = await newDataDirectory()
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const tls = await createCertificates(folder)
  const { home, entry } = await start({ tls })
  const headers = { 'mcp-session-id': await open(home) }
  expect((await send(entry.url, { headers, body: call })).json.result).toMatchObject({
    content: [{ text: 'replica 0' }],
  })
  const port = Number(new URL(home.relay.url).port)
  const foreign = {
    cert: await readFile(join(folder, 'foreign.pem')),
    key: await readFile(join(folder, 'foreign.key')),
  }
  for (const shown of [{}, foreign]) {
    const socket = connect({ port, host: '127.0.0.1', ca: await readFile(tls.ca), ...shown })
    socket.on('error', () => {})
    socket.write('GET /mcp HTTP/1.1\r\nhost: x\r\n\r\n')
    let answer = ''
    socket.on('data', chunk => {
      answer += chunk
    })
    await new Promise(resolve => socket.on('close', resolve))
    expect(answer).toBe('')
  }
})
