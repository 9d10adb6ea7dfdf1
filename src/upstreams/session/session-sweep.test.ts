import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { answerWith } from '../../../test/support/remote-upstream.ts'
import { callerOf, exchangeWith, legacy, type Script, scriptedServer } from '../../../test/support/scripted-server.ts'
import { joinUpstream, sessionCaller } from '../../../test/support/upstream-replica.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import type { ServerSessionRecords } from './server-session-records.ts'
import { encodeStored, urlHash } from './stored-server-session.ts'

const MINUTE = 60_000
const answerOk = answerWith({ ok: true })

// Only the clock and the intervals are faked: sockets need the rest.
beforeEach(() => vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval', 'performance'] }))
afterEach(() => vi.useRealTimers())

/** A legacy server that counts the sessions it has. */
const countingServer = async () => {
  const open = new Map<string, string | undefined>() // the Authorization header by session
  let count = 0
  const script: Script = (arrived, response) => {
    const id = String(arrived.headers['mcp-session-id'])
    if (arrived.body.method === 'initialize') {
      const session = `s${++count}`
      open.set(session, arrived.headers.authorization)
      return legacy(answerOk, { sessions: [session] })(arrived, response)
    }
    if (arrived.method === 'DELETE' && open.get(id) === arrived.headers.authorization) open.delete(id)
    legacy(answerOk)(arrived, response)
  }
  const server = await scriptedServer(script)
  onTestFinished(server.close)
  return { ...server, open, script }
}

/** With another replica, so that only the time says that a session is abandoned. */
const createCluster = (): MemoryCluster => {
  const cluster = new MemoryCluster()
  cluster.join()
  return cluster
}

/** Lets the time of abandoned sessions run out; the interval is not called. */
const letExpire = (ms = 31 * MINUTE): void => void vi.setSystemTime(Date.now() + ms)

describe('sessions that no client comes back to', () => {
  it('are all ended at their server when they have expired', async () => {
    const server = await countingServer()
    const cluster = createCluster()
    const first = joinUpstream(cluster, server.url)
    await Promise.all(Array.from({ length: 20 }, (_, at) => first.call(sessionCaller(`client-${at}`))))
    await first.kill()
    expect(server.open.size).toBe(20)
    const second = joinUpstream(cluster, server.url)
    expect(await second.records.sweep()).toBe(0)
    letExpire()
    expect(await second.records.sweep()).toBe(20)
    expect(server.open.size).toBe(0)
    expect(cluster.records.size).toBe(0)
    expect(await second.records.sweep()).toBe(0)
  })

  it('are ended at most a hundred at a time', async () => {
    const server = await countingServer()
    const cluster = createCluster()
    const before = cluster.join()
    const owner = { server: 'far', url: urlHash(server.url), workspace: 'w', principal: 'p', session: undefined }
    const state = { handshake: undefined, isReady: true, hasStream: false, attempts: 0 }
    for (let at = 0; at < 120; at++) {
      const body = encodeStored({ ...owner, ...state, sessionId: `old-${at}` })
      await before.create('server-session', `record-${at}`, body, { expires: Date.now() + MINUTE })
    }
    await before.close()
    letExpire()
    const { records } = joinUpstream(cluster, server.url)
    expect([await records.sweep(), await records.sweep(), await records.sweep()]).toEqual([100, 20, 0])
    const ended = server.of('DELETE').map(({ headers }) => headers['mcp-session-id'])
    expect(new Set(ended).size).toBe(120)
  })

  it('are ended by the interval', async () => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    joinUpstream(cluster, server.url)
    await vi.advanceTimersByTimeAsync(31 * MINUTE)
    await server.arrived('DELETE')
    await vi.waitFor(() => expect(cluster.records.size).toBe(0))
  })

  it('are ended at once where no process could go on with them', async () => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.upstream.open(callerOf({ principal: undefined }))
    await first.call({ ...sessionCaller('channel'), isTransient: true })
    await first.kill()
    const second = joinUpstream(cluster, server.url)
    expect(await second.records.sweep()).toBe(2)
    expect(server.open.size).toBe(0)
  })

  it.each([
    ['at once if their client has ended its own session', 1],
    ['when they expire if there are other replicas, which may go on with them', 0],
  ] as const)('are ended %s', async (_, endedAtOnce) => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const client = cluster.join()
    for (const session of ['gone', 'there'])
      await client.create('session', session, Buffer.from('{}'), { expires: Date.now() + 60 * MINUTE })
    const first = joinUpstream(cluster, server.url)
    for (const session of ['gone', 'there']) await first.call(sessionCaller(session))
    await first.kill()
    const taken = await client.take('session', 'gone')
    if (taken.kind === 'mine') await client.remove(taken.held)
    if (endedAtOnce === 1) await client.close() // the second is alone
    const second = joinUpstream(cluster, server.url)
    expect(await second.records.sweep()).toBe(endedAtOnce)
    expect(server.open.size).toBe(2 - endedAtOnce)
    await second.call(sessionCaller('there'))
    expect(server.of('initialize')).toHaveLength(2)
    letExpire()
    second.records.refresh(true)
    await second.records.flush()
    expect(await second.records.sweep()).toBe(1 - endedAtOnce)
    expect([...server.open.keys()]).toEqual(['s2'])
  })

  it('are ended soon after their client has ended its own session, even if a sweep has seen them before', async () => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const client = cluster.join()
    const claim = await client.create('session', 'leaves', Buffer.from('{}'), { expires: Date.now() + 60 * MINUTE })
    const first = joinUpstream(cluster, server.url)
    for (const session of ['leaves', 'left']) await first.call(sessionCaller(session))
    await first.kill()
    cluster.kill(client.members.self) // the next gateway is alone
    const second = joinUpstream(cluster, server.url)
    expect(await second.records.sweep()).toBe(1)
    expect([...server.open.keys()]).toEqual(['s1'])
    expect(await second.records.sweep()).toBe(0)
    const home = cluster.join()
    const taken = await home.take(claim.kind, claim.id)
    if (taken.kind === 'mine') await home.remove(taken.held)
    await home.close()
    expect(await second.records.sweep()).toBe(1)
    expect(server.open.size).toBe(0)
    expect(cluster.records.size).toBe(0)
  })

  it('are ended with the credentials of their caller', async () => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const personal = { values: { authorization: ['Bearer ', { caller: 'name' as const }] } }
    const first = joinUpstream(cluster, server.url, { config: { personal } })
    for (const principal of ['ann', 'ben']) await first.call({ ...sessionCaller(`of-${principal}`), principal })
    await first.kill()
    expect([...server.open.values()]).toEqual(['Bearer ann', 'Bearer ben'])
    const second = joinUpstream(cluster, server.url, { config: { personal } })
    letExpire()
    expect(await second.records.sweep()).toBe(2)
    expect(server.open.size).toBe(0)
  })

  it('are ended with new credentials where the configuration has others now', async () => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url, { config: { headers: { 'x-key': 'old' } } })
    await first.call()
    await first.kill()
    const second = joinUpstream(cluster, server.url, { config: { headers: { 'x-key': 'new' } } })
    await second.call()
    letExpire()
    await second.records.flush()
    expect(await second.records.sweep()).toBe(1)
    const [end] = server.of('DELETE')
    expect([end?.headers['mcp-session-id'], end?.headers['x-key']]).toEqual(['s1', 'new'])
  })

  it('are tried again where the server cannot be reached, and forgotten in the end', async () => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    await server.close()
    const second = joinUpstream(cluster, server.url)
    for (const left of [1, 1, 0]) {
      letExpire()
      expect(await second.records.sweep()).toBe(1)
      expect(cluster.records.size).toBe(left)
    }
  })

  it.each([
    ['was removed', (records: ServerSessionRecords) => records.removeServer('far'), undefined],
    ['has another address', () => {}, '/other'],
  ] as const)('are forgotten where their server %s', async (_, change, path) => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    const second = joinUpstream(cluster, path ? `${server.origin}${path}` : server.url)
    change(second.records)
    letExpire()
    expect(await second.records.sweep()).toBe(1)
    expect(cluster.records.size).toBe(0)
    expect(server.of('DELETE')).toHaveLength(0)
  })
})

describe('sessions that are open', () => {
  it('stay recorded for as long as they are open', async () => {
    const server = await countingServer()
    const cluster = createCluster()
    const { records, upstream, call } = joinUpstream(cluster, server.url)
    exchangeWith(await upstream.open(sessionCaller()), 'subscriptions/listen', { caller: sessionCaller() })
    for (let hour = 0; hour < 2; hour++) await vi.advanceTimersByTimeAsync(60 * MINUTE)
    expect(await records.sweep()).toBe(0)
    expect(await call()).toEqual({ ok: true })
    expect(server.of('DELETE')).toHaveLength(0)
    expect(cluster.records.size).toBe(1)
  })

  it.each([
    ['forward', 24 * 60 * MINUTE],
    ['back', -24 * 60 * MINUTE],
  ])('are not swept when the clock jumps %s', async (_, ms) => {
    const server = await countingServer()
    const cluster = createCluster()
    const { upstream, records, call } = joinUpstream(cluster, server.url)
    exchangeWith(await upstream.open(sessionCaller()), 'subscriptions/listen', { caller: sessionCaller() })
    await records.flush()
    const abandoned = joinUpstream(cluster, server.url)
    await abandoned.call(sessionCaller('b'))
    await abandoned.kill()
    vi.setSystemTime(Date.now() + ms)
    await vi.advanceTimersByTimeAsync(MINUTE)
    await records.flush()
    expect(server.of('DELETE')).toHaveLength(0)
    expect(await call()).toEqual({ ok: true })
    await records.sweep()
    expect(server.open.has('s1')).toBe(true)
  })
})

it('a kill leaks at most what was opened within the last batch', async () => {
  const server = await countingServer()
  const cluster = createCluster()
  const first = joinUpstream(cluster, server.url, { batchMs: MINUTE })
  for (let at = 0; at < 10; at++) await first.call(sessionCaller(`stored-${at}`))
  await first.records.flush() // one batch
  for (let at = 0; at < 3; at++) await first.call(sessionCaller(`unstored-${at}`))
  first.killWithinBatch()
  const second = joinUpstream(cluster, server.url)
  letExpire()
  expect(await second.records.sweep()).toBe(10)
  expect([...server.open.keys()]).toEqual(['s11', 's12', 's13'])
})
