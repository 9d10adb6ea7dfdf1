import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createTestLog } from '../../../test/support/log.ts'
import { answerWith } from '../../../test/support/remote-upstream.ts'
import { callerOf, exchangeWith, legacy, type Script, scriptedServer } from '../../../test/support/scripted-server.ts'
import { joinUpstream, sessionCaller } from '../../../test/support/upstream-replica.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import type { StateStore } from '../../stores/state/state-store.ts'
import { SILENT } from '../../telemetry/log.ts'
import type { EndOutcome } from '../streamable/session-headers.ts'
import { createSessionEnder } from './remote-records.ts'
import type { ServerSessionRecords } from './server-session-records.ts'
import { encodeStored, urlHash } from './stored-server-session.ts'

const MINUTE = 60_000
const answerOk = answerWith({ ok: true })

// Only the clock and the intervals are faked: sockets need the rest.
beforeEach(() => vi.useFakeTimers({ toFake: ['Date', 'setInterval', 'clearInterval', 'performance'] }))
afterEach(() => vi.useRealTimers())

const OTHER = { url: urlHash('http://other.invalid/mcp'), end: () => Promise.resolve('ended' as const) }

const remoteAt = (url: string) =>
  ({ name: 'far', kind: 'remote', url, type: 'auto', headers: {}, era: 'auto', timeoutMs: 2000 }) as const

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

/** Stores that many sessions of a process that has ended. */
const storeAbandoned = async (
  cluster: MemoryCluster,
  url: string,
  count: number,
  { attempts = 0, server = 'far' } = {},
) => {
  const before = cluster.join()
  const owner = { server, url: urlHash(url), workspace: 'w', principal: 'p', session: undefined }
  const state = { handshake: undefined, isReady: true, hasStream: false, attempts }
  for (let at = 0; at < count; at++) {
    const body = encodeStored({ ...owner, ...state, sessionId: `old-${at}` })
    await before.create('server-session', `${server}-${at}`, body, { expires: Date.now() + MINUTE })
  }
  await before.close()
}

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
    await storeAbandoned(cluster, server.url, 120)
    letExpire()
    const { records } = joinUpstream(cluster, server.url)
    expect([await records.sweep(), await records.sweep(), await records.sweep()]).toEqual([100, 20, 0])
    const ended = server.of('DELETE').map(({ headers }) => headers['mcp-session-id'])
    expect(new Set(ended).size).toBe(120)
  })

  it('are ended where the store gives more of them than were asked for', async () => {
    const server = await countingServer()
    const cluster = createCluster()
    await storeAbandoned(cluster, server.url, 120)
    letExpire()
    const limits: number[] = []
    const changeStore = (store: StateStore): StateStore => {
      const own = store.takeAbandoned.bind(store)
      store.takeAbandoned = async (kind, why, limit) => {
        limits.push(limit)
        return kind === 'server-session' && why === 'expired' ? own(kind, why, 120) : own(kind, why, limit)
      }
      return store
    }
    const { records } = joinUpstream(cluster, server.url, { changeStore })
    expect(await records.sweep()).toBe(120)
    expect(Math.min(...limits)).toBeGreaterThan(0) // PostgreSQL rejects less, and SQLite takes all then
    expect(server.of('DELETE')).toHaveLength(120)
    expect(cluster.records.size).toBe(0)
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

  it.each([
    ['cannot be reached', undefined],
    ['is not available', 503],
  ] as const)('are tried again ever later where the server %s, and forgotten in the end', async (_, status) => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    if (status === undefined) await server.close()
    else server.become((__, response) => void response.writeHead(status).end())
    const second = joinUpstream(cluster, server.url)
    letExpire()
    for (const [waitMs, left] of [
      [0, 1],
      [10_000, 1],
      [MINUTE, 1],
      [10 * MINUTE, 1],
      [10 * MINUTE, 0],
    ] as const) {
      if (waitMs > 0) {
        letExpire(waitMs - 1000)
        expect(await second.records.sweep()).toBe(0)
      }
      letExpire(1000)
      expect(await second.records.sweep()).toBe(1)
      expect(cluster.records.size).toBe(left)
    }
    expect(server.of('DELETE')).toHaveLength(status === undefined ? 0 : 5)
  })

  it('are put off together where their server does not respond', async () => {
    const [server, other] = [await countingServer(), await countingServer()]
    const cluster = createCluster()
    const first = joinUpstream(cluster, server.url)
    for (let at = 0; at < 30; at++) await first.call(sessionCaller(`client-${at}`))
    await first.kill()
    const second = joinUpstream(cluster, other.url)
    await second.call(sessionCaller('other'))
    await second.kill()
    server.become((_, response) => void response.destroy())
    const third = joinUpstream(cluster, other.url)
    third.records.addServer('far', createSessionEnder(remoteAt(server.url), { log: SILENT }))
    letExpire()
    expect(await third.records.sweep()).toBe(31)
    expect(server.of('DELETE').length).toBeLessThanOrEqual(10) // at a time
    expect([server.open.size, other.open.size, cluster.records.size]).toEqual([30, 0, 30])
    server.become(server.script)
    letExpire(10_000)
    expect(await third.records.sweep()).toBe(30)
    expect([server.open.size, cluster.records.size]).toEqual([0, 0])
  })

  it('are forgotten only after an attempt of their own where their server does not respond', async () => {
    const server = await countingServer()
    const cluster = createCluster()
    await storeAbandoned(cluster, server.url, 30, { attempts: 4 })
    server.become((_, response) => void response.destroy())
    const { records } = joinUpstream(cluster, server.url)
    letExpire()
    for (const left of [20, 10]) {
      await records.sweep()
      expect(cluster.records.size).toBe(left)
      letExpire(10_000)
    }
    server.become(server.script)
    await records.sweep()
    expect(server.of('DELETE')).toHaveLength(30)
    expect(cluster.records.size).toBe(0)
  })

  describe('at a server that does not respond', () => {
    const SILENT_URL = 'http://silent.invalid/mcp'

    /** A gateway that sweeps so many sessions at a server that does not respond, and a few at one that does. */
    const sweepSilent = async (sessions: number, others: number) => {
      const server = await countingServer()
      const cluster = createCluster()
      await storeAbandoned(cluster, SILENT_URL, sessions, { server: 'silent' })
      await storeAbandoned(cluster, server.url, others)
      const counts = { tries: 0, writes: 0 }
      const changeStore = (store: StateStore): StateStore => {
        const write = store.write.bind(store)
        store.write = (...args) => {
          counts.writes++
          return write(...args)
        }
        return store
      }
      const { records } = joinUpstream(cluster, server.url, { changeStore })
      const silent = { url: urlHash(SILENT_URL), outcome: 'unreachable' as EndOutcome }
      const end = (): Promise<EndOutcome> => {
        counts.tries++
        return Promise.resolve(silent.outcome)
      }
      records.addServer('silent', { url: silent.url, end })
      letExpire()
      return { server, cluster, records, counts, silent }
    }

    it('keep those of other servers waiting for no further sweep', async () => {
      const { server, records, counts } = await sweepSilent(2000, 50)
      expect(await records.sweep()).toBe(2050)
      expect(server.of('DELETE')).toHaveLength(50)
      expect(counts.tries).toBe(10)
    })

    it('are neither tried nor written again in most of the next sweeps', async () => {
      const { records, counts } = await sweepSilent(500, 0)
      for (let sweep = 0; sweep < 60; sweep++) {
        await records.sweep()
        letExpire(10_000)
      }
      expect(counts.tries).toBeLessThanOrEqual(70) // after 10 s, and again after as long as it has been silent
      expect(counts.writes).toBeLessThanOrEqual(10 * 500)
    })

    it('are all given up after the time of all attempts', async () => {
      const { cluster, records, counts } = await sweepSilent(1000, 0)
      const left: number[] = []
      for (let minute = 0; minute < 22; minute++) {
        for (let sweep = 0; sweep < 6; sweep++) {
          await records.sweep()
          letExpire(10_000)
        }
        left.push(cluster.records.size)
      }
      expect(left.slice(0, 21)).toEqual(Array.from({ length: 21 }, () => 1000))
      expect(left[21]).toBe(0)
      expect(counts.tries).toBeLessThan(150)
    })

    it('are all ended when it responds again, also if the time is over then', async () => {
      const { cluster, records, silent } = await sweepSilent(300, 0)
      for (let minute = 0; minute < 21; minute++) {
        await records.sweep()
        letExpire(MINUTE)
      }
      expect(cluster.records.size).toBe(300)
      silent.outcome = 'ended'
      letExpire(10_000)
      expect([await records.sweep(), await records.sweep(), await records.sweep()]).toEqual([100, 100, 100])
      expect(cluster.records.size).toBe(0)
    })
  })

  it('do not keep those of other callers waiting where their caller has no credentials any more', async () => {
    const server = await countingServer()
    const cluster = createCluster()
    const anyone = { values: {}, credentials: { '*': { kind: 'values' as const, values: {} } } }
    const onlyBen = { values: {}, credentials: { ben: { kind: 'values' as const, values: {} } } }
    const first = joinUpstream(cluster, server.url, { config: { personal: anyone } })
    const principals = [...Array.from({ length: 12 }, (_, at) => `former-${at}`), 'ben']
    for (const principal of principals) await first.call({ ...sessionCaller(`of-${principal}`), principal })
    await first.kill()
    const { log, lines } = createTestLog()
    const second = joinUpstream(cluster, server.url, { config: { personal: onlyBen }, log })
    letExpire()
    expect(await second.records.sweep()).toBe(13)
    expect([server.of('DELETE').length, server.open.size, cluster.records.size]).toEqual([1, 12, 12])
    expect(lines.filter(({ level }) => level === 'info').map(({ fields }) => fields)).toEqual([{ sessions: 1 }])
  })

  it('are tried again by the interval within seconds where the server was away for a moment', async () => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const { upstream, call } = joinUpstream(cluster, server.url)
    let refusals = 2
    server.become((arrived, response) => {
      if (arrived.method === 'DELETE' && refusals-- > 0) response.writeHead(503).end()
      else server.script(arrived, response)
    })
    const standing = exchangeWith(await upstream.open(sessionCaller()), 'subscriptions/listen', {
      caller: sessionCaller(),
    })
    await call()
    standing.abort.abort({ kind: 'gone' })
    await server.arrived('DELETE')
    for (const count of [2, 3]) {
      await vi.advanceTimersByTimeAsync(20_000)
      await server.arrived('DELETE', count)
    }
    await vi.waitFor(() => expect(cluster.records.size).toBe(0))
    expect(server.open.size).toBe(0)
  })

  it.each([
    ['was removed an hour ago', (records: ServerSessionRecords) => records.removeServer('far'), undefined],
    ['has another address', () => {}, '/other'],
  ] as const)('are forgotten after a while where their server %s', async (_, change, path) => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    const second = joinUpstream(cluster, path ? `${server.origin}${path}` : server.url)
    change(second.records)
    letExpire(61 * MINUTE)
    for (const waitMs of [10_000, MINUTE, 10 * MINUTE, 10 * MINUTE, 0]) {
      expect(cluster.records.size).toBe(1)
      expect(await second.records.sweep()).toBe(1)
      letExpire(waitMs)
    }
    expect(cluster.records.size).toBe(0)
    expect(server.of('DELETE')).toHaveLength(0)
  })

  it('are left to a process that has their server, where one without it has swept them first', async () => {
    const server = await countingServer()
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.upstream.open(callerOf({ principal: undefined }))
    await first.kill()
    const second = joinUpstream(cluster, `${server.origin}/other`)
    expect(await second.records.sweep()).toBe(1)
    await second.kill()
    const third = joinUpstream(cluster, server.url)
    expect(await third.records.sweep()).toBe(1)
    expect([server.open.size, cluster.records.size]).toEqual([0, 0])
  })

  it.each([
    ['was removed', (records: ServerSessionRecords) => records.removeServer('far')],
    ['got another address', (records: ServerSessionRecords) => records.addServer('far', OTHER)],
  ] as const)('are ended where their server was not available when it %s', async (_, change) => {
    const server = await countingServer()
    const cluster = createCluster()
    const { upstream, call, records } = joinUpstream(cluster, server.url)
    await call()
    server.become((__, response) => void response.writeHead(503).end())
    change(records)
    await upstream.close()
    expect(server.of('DELETE')).toHaveLength(1)
    server.become(server.script)
    expect(await records.sweep()).toBe(1)
    expect(server.open.size).toBe(0)
    expect(cluster.records.size).toBe(0)
  })

  it('are ended although they were closed before they were stored, and their server was not available', async () => {
    const server = await countingServer()
    const cluster = createCluster()
    const { upstream, call, records } = joinUpstream(cluster, server.url, { batchMs: MINUTE })
    await call()
    expect(cluster.records.size).toBe(0)
    server.become((_, response) => void response.writeHead(503).end())
    await upstream.close()
    server.become(server.script)
    await vi.waitFor(() => expect(cluster.records.size).toBe(1))
    expect(await records.sweep()).toBe(1)
    expect(server.open.size).toBe(0)
    expect(cluster.records.size).toBe(0)
  })

  it('are ended where the gateway cannot use what their handshake said, and their server was not available', async () => {
    const unusable = legacy(answerOk, { version: '1999-01-01' })
    const server = await scriptedServer((arrived, response) => {
      if (arrived.method === 'DELETE') response.writeHead(503).end()
      else unusable(arrived, response)
    })
    onTestFinished(server.close)
    const cluster = createCluster()
    const { upstream, records } = joinUpstream(cluster, server.url)
    await expect(upstream.open(sessionCaller())).rejects.toThrow('protocol version 1999-01-01')
    await vi.waitFor(() => expect(cluster.records.size).toBe(1))
    server.become(unusable)
    expect(await records.sweep()).toBe(1)
    expect(server.of('DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s1', 's1'])
    expect(cluster.records.size).toBe(0)
  })

  it('are ended where they were opened in place of a lost one that was closed meanwhile', async () => {
    const server = await countingServer()
    const cluster = createCluster()
    const { upstream, call, records } = joinUpstream(cluster, server.url)
    await call()
    let answerLate = () => {}
    server.become((arrived, response) => {
      if (arrived.body.method === 'initialize') answerLate = () => server.script(arrived, response)
      else if (arrived.headers['mcp-session-id'] === 's1') response.writeHead(404).end()
      else response.writeHead(503).end()
    })
    const failing = call()
    await server.arrived('initialize', 2)
    const closing = upstream.close()
    await expect(failing).rejects.toThrow()
    await server.arrived('DELETE')
    answerLate()
    await closing
    expect(server.of('DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s1', 's2'])
    server.become(server.script)
    expect(await records.sweep()).toBe(1)
    expect([...server.open.keys()]).toEqual(['s1']) // which the server has lost
    expect(cluster.records.size).toBe(0)
  })

  it.each([
    ['is not available', 503],
    ['does not answer', undefined],
  ] as const)('are ended by the next process where the server %s during a planned stop', async (_, status) => {
    const server = await countingServer()
    const cluster = createCluster()
    const channel = sessionCaller('channel', { isTransient: true }) // which no other process can go on with
    const first = joinUpstream(cluster, server.url, { batchMs: MINUTE, options: { closeMs: 100 } })
    await first.call(channel)
    server.become((__, response) => {
      if (status !== undefined) response.writeHead(status).end()
    })
    await first.stop()
    expect(server.of('DELETE')).toHaveLength(1)
    server.become(server.script)
    const second = joinUpstream(cluster, server.url)
    expect(await second.records.sweep()).toBe(1)
    expect(server.open.size).toBe(0)
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
