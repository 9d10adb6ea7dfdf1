import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { answerWith } from '../../../test/support/remote-upstream.ts'
import {
  callerOf,
  exchangeWith,
  failure,
  legacy,
  notice,
  openStream,
  type Script,
  scriptedServer,
  sendJson,
} from '../../../test/support/scripted-server.ts'
import { start as startSdkServer } from '../../../test/support/servers/sdk-v1-server.ts'
import { joinUpstream, sessionCaller, type UpstreamReplicaOptions } from '../../../test/support/upstream-replica.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { MemoryCluster } from '../../stores/state/memory-state.ts'
import { type Claim, StateError, type StateStore } from '../../stores/state/state-store.ts'

const answerOk = answerWith({ ok: true })
const dedicated = sessionCaller()
const modern = callerOf()
const listen: Script = (_, response) => void openStream(response)

const startScripted = async (script: Script) => {
  const server = await scriptedServer(script)
  onTestFinished(server.close)
  return server
}

/** A legacy server that can forget its sessions. */
const forgetful = (forgotten: Script, script: Script = answerOk) => {
  const known = new Set<string>()
  let count = 0
  return {
    known,
    script: ((arrived, response) => {
      const id = arrived.headers['mcp-session-id']
      if (arrived.body.method === 'initialize') {
        const session = `s${++count}`
        known.add(session)
        return legacy(script, { sessions: [session] })(arrived, response)
      }
      if (typeof id === 'string' && !known.has(id)) return forgotten(arrived, response)
      if (arrived.method === 'DELETE') known.delete(String(id))
      return legacy(script, { listen })(arrived, response)
    }) satisfies Script,
  }
}

const refuseWith =
  (status: number, message: string): Script =>
  (_, response) =>
    sendJson(response, failure(null, -32000, message), status)

describe('a session after the process was killed', () => {
  it.each([
    ['of a client session', dedicated],
    ['of modern callers', modern],
  ])('%s goes on without a handshake', async (_, caller) => {
    const server = await startScripted(legacy(answerOk, { listen }))
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call(caller)
    await first.kill()
    const second = joinUpstream(cluster, server.url)
    await second.call(caller)
    expect(server.of('initialize')).toHaveLength(1)
    expect(server.of('notifications/initialized')).toHaveLength(1)
    expect(server.of('DELETE')).toHaveLength(0)
    const ids = server.of('tools/call').map(({ headers }) => headers['mcp-session-id'])
    expect(ids).toEqual(['s1', 's1'])
  })

  it('knows what the handshake said', async () => {
    const server = await startScripted(legacy(answerOk, { listen }))
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    const before = await first.call(dedicated, 'server/discover')
    await first.kill()
    const second = joinUpstream(cluster, server.url)
    expect(await second.call(dedicated, 'server/discover')).toEqual(before)
    expect((await second.upstream.open(dedicated)).revision).toBe('2025-11-25')
  })

  it('uses no request id again, and opens its GET stream without Last-Event-ID', async () => {
    const server = await startScripted(
      legacy(answerOk, {
        listen: (_, response) => openStream(response).raw('id: 7\ndata: {"jsonrpc":"2.0","method":"x"}\n\n'),
      }),
    )
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    const second = joinUpstream(cluster, server.url)
    await second.call()
    await server.arrived('GET', 2)
    expect(server.of('GET').map(({ headers }) => headers['last-event-id'])).toEqual([undefined, undefined])
    expect(server.of('tools/call')[1]?.body.id).toBe(2 * 2 ** 32 + 1)
    await second.kill()
    const third = joinUpstream(cluster, server.url)
    await third.call()
    expect(server.of('tools/call')[2]?.body.id).toBe(3 * 2 ** 32 + 1)
  })

  it('receives what the server says outside calls, once', async () => {
    const streams: ReturnType<typeof openStream>[] = []
    const server = await startScripted(
      legacy(answerOk, { listen: (_, response) => void streams.push(openStream(response)) }),
    )
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    const second = joinUpstream(cluster, server.url)
    const standing = exchangeWith(await second.upstream.open(dedicated), 'subscriptions/listen', { caller: dedicated })
    await server.arrived('GET', 2)
    streams[1]?.event(notice('notifications/resources/updated', { uri: 'a:b' }))
    await standing.notice('notifications/resources/updated')
    const told = standing.frames.map(frame => (frame.kind === 'notice' ? frame.method : frame.kind))
    expect(told).toEqual(['notifications/subscriptions/acknowledged', 'notifications/resources/updated'])
  })

  it.each([
    ['still has the connection of the killed process', 409],
    ['is not ready yet', 503],
  ])('announces what may have been missed, once, where the server %s', async (_, status) => {
    let count = 0
    const server = await startScripted(
      legacy(answerOk, {
        listen: (_, response) => {
          if (++count === 2) response.writeHead(status).end()
          else openStream(response)
        },
      }),
    )
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    const second = joinUpstream(cluster, server.url)
    const standing = exchangeWith(await second.upstream.open(dedicated), 'subscriptions/listen', { caller: dedicated })
    await standing.notice('notifications/tools/list_changed')
    expect(server.of('GET')).toHaveLength(3)
    expect(server.of('initialize')).toHaveLength(1)
    const changes = standing.frames.filter(frame => frame.kind === 'notice' && frame.method.endsWith('list_changed'))
    expect(changes).toHaveLength(1)
  })

  it.each([
    ['HTTP 404', refuseWith(404, 'Session not found')],
    ['HTTP 404 without JSON', (_, response) => void response.writeHead(404).end('Not Found')],
    ['HTTP 400', refuseWith(400, 'Bad Request: No valid session ID provided')],
    ['HTTP 400 of a transport that was not initialized', refuseWith(400, 'Bad Request: Server not initialized')],
    ['HTTP 400 in plain text', (_, response) => void response.writeHead(400).end('Invalid or missing session ID')],
    ['HTTP 401 as the Rust SDK', (_, response) => void response.writeHead(401).end('Unauthorized: Session not found')],
    ['HTTP 410', refuseWith(410, 'The session has expired')],
    ['HTTP 503', refuseWith(503, 'Unknown session id')],
  ] as [string, Script][])(
    'is initialized again, unnoticed by the client, where the server answers %s',
    async (_, forgotten) => {
      const { script, known } = forgetful(forgotten)
      const server = await startScripted(script)
      const cluster = new MemoryCluster()
      const first = joinUpstream(cluster, server.url)
      await first.call()
      await first.kill()
      known.clear()
      const second = joinUpstream(cluster, server.url)
      expect(await second.call()).toEqual({ ok: true })
      expect(server.of('initialize')).toHaveLength(2)
      expect([...known]).toEqual(['s2'])
      await second.kill()
      const third = joinUpstream(cluster, server.url)
      expect(await third.call()).toEqual({ ok: true })
      expect(server.of('initialize')).toHaveLength(2)
    },
  )

  it('is initialized again once for all calls that come at the same time', async () => {
    const { script, known } = forgetful(refuseWith(404, 'Session not found'))
    const server = await startScripted(script)
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    known.clear()
    const second = joinUpstream(cluster, server.url)
    const results = await Promise.all(Array.from({ length: 8 }, () => second.call()))
    expect(results).toEqual(Array(8).fill({ ok: true }))
    expect(server.of('initialize')).toHaveLength(2)
  })

  it('fails with the answer of a server that rejects the credentials, and is not initialized again', async () => {
    const server = await startScripted(legacy(answerOk, { listen }))
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    const second = joinUpstream(cluster, server.url)
    const peer = await second.upstream.open(dedicated)
    server.become((_, response) => void response.writeHead(401).end('Unauthorized: log in to start a session'))
    const call = exchangeWith(peer, 'tools/call', { caller: dedicated })
    expect((await call.failure()).data).toMatchObject({ reason: 'upstream_auth' })
    expect(server.of('initialize')).toHaveLength(1)
  })

  it('is initialized again by its GET stream, without a call, and its listener hears of changed lists', async () => {
    const { script, known } = forgetful(refuseWith(404, 'Session not found'))
    const server = await startScripted(script)
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    known.clear()
    const second = joinUpstream(cluster, server.url)
    const standing = exchangeWith(await second.upstream.open(dedicated), 'subscriptions/listen', { caller: dedicated })
    await standing.notice('notifications/tools/list_changed')
    expect([...known]).toEqual(['s2'])
  })

  it('has what a new handshake says, where the server became another version', async () => {
    const { script, known } = forgetful(refuseWith(404, 'Session not found'))
    const server = await startScripted(script)
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    known.clear()
    server.become((arrived, response) => {
      if (arrived.body.method !== 'initialize') return script(arrived, response)
      known.add('n1')
      legacy(answerOk, { version: '2025-06-18', capabilities: { prompts: {} }, sessions: ['n1'] })(arrived, response)
    })
    const second = joinUpstream(cluster, server.url)
    await second.call()
    const peer = await second.upstream.open(dedicated)
    expect(peer.revision).toBe('2025-06-18')
    expect(await second.call(dedicated, 'server/discover')).toMatchObject({ capabilities: { prompts: {} } })
  })

  it('stays recorded while its server is down, and goes on when it is back', async () => {
    const server = await startScripted(legacy(answerOk, { listen }))
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    server.become((_, response) => void response.writeHead(503).end())
    const second = joinUpstream(cluster, server.url, { options: { backoffMs: 1 } })
    await expect(second.upstream.open(dedicated)).rejects.toThrow('HTTP 503')
    server.become(legacy(answerOk, { listen, sessions: ['other'] }))
    await expect.poll(() => second.call().catch(() => undefined)).toEqual({ ok: true })
    expect(server.of('initialize')).toHaveLength(1)
  })

  it('sends notifications/initialized if the first process was killed before', async () => {
    const inner = legacy(answerOk, { listen })
    const server = await startScripted((arrived, response) => {
      if (arrived.body.method !== 'notifications/initialized') inner(arrived, response)
    })
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    const opening = first.upstream.open(dedicated)
    await server.arrived('notifications/initialized')
    await first.records.flush()
    server.become(inner)
    await first.kill()
    await opening.catch(() => {})
    const second = joinUpstream(cluster, server.url)
    await second.call()
    expect(server.of('initialize')).toHaveLength(1)
    expect(server.of('notifications/initialized')).toHaveLength(2)
  })
})

describe('a session is not continued', () => {
  const others: [string, UpstreamReplicaOptions, Partial<Caller>][] = [
    ['with other credentials', { config: { headers: { authorization: 'Bearer new' } } }, {}],
    ['by another client session', {}, { session: 'client-2' }],
    ['by another principal', {}, { principal: 'other' }],
    ['in another workspace', {}, { workspace: 'other' }],
  ]
  it.each(others)('%s', async (_, options, changes) => {
    const server = await startScripted(legacy(answerOk, { listen }))
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    const second = joinUpstream(cluster, server.url, options)
    await second.call({ ...dedicated, ...changes })
    expect(server.of('initialize')).toHaveLength(2)
    expect(server.of('tools/call')[1]?.headers['mcp-session-id']).toBe('s2')
  })

  it('at another address', async () => {
    const [before, after] = [await startScripted(legacy(answerOk)), await startScripted(legacy(answerOk))]
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, before.url)
    await first.call()
    await first.kill()
    await joinUpstream(cluster, after.url).call()
    expect(after.of('initialize')).toHaveLength(1)
  })

  it('while another replica holds it: both have one, and both end theirs', async () => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    const [first, second] = [joinUpstream(cluster, server.url), joinUpstream(cluster, server.url)]
    await first.call(modern)
    await first.records.flush()
    await second.call(modern)
    await second.records.flush()
    expect(cluster.records.size).toBe(2)
    await Promise.all([first.upstream.close(), second.upstream.close()])
    await Promise.all([first.records.close(), second.records.close()])
    expect(
      server
        .of('DELETE')
        .map(({ headers }) => headers['mcp-session-id'])
        .sort(),
    ).toEqual(['s1', 's2'])
    expect(cluster.records.size).toBe(0)
  })
})

describe('ending', () => {
  it('removes the record of a session that ends, and tells the server', async () => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    const { upstream, records, call } = joinUpstream(cluster, server.url)
    await call()
    await records.flush()
    expect(cluster.records.size).toBe(1)
    const standing = exchangeWith(await upstream.open(dedicated), 'subscriptions/listen', { caller: dedicated })
    standing.abort.abort({ kind: 'gone' })
    await server.arrived('DELETE')
    await expect.poll(() => cluster.records.size).toBe(0)
    expect(records.size).toBe(0)
  })

  it('a planned stop ends no session that another replica can go on with', async () => {
    const server = await startScripted(legacy(answerOk, { listen }))
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    const second = joinUpstream(cluster, server.url)
    await first.call()
    await first.stop()
    expect(server.of('DELETE')).toHaveLength(0)
    await second.call()
    expect(server.of('initialize')).toHaveLength(1)
  })

  it.each([
    ['of anonymous callers', callerOf({ principal: undefined })],
    ['of SSE channels', callerOf({ session: 'channel', isTransient: true })],
  ])('a planned stop ends sessions %s', async (_, caller) => {
    const server = await startScripted(legacy(answerOk, { listen }))
    const cluster = new MemoryCluster()
    cluster.join()
    const first = joinUpstream(cluster, server.url)
    const peer = await first.upstream.open(caller)
    await first.records.flush()
    expect(peer.revision).toBe('2025-11-25')
    expect(cluster.records.size).toBe(1)
    await first.stop()
    expect(server.of('DELETE')).toHaveLength(1)
    expect(cluster.records.size).toBe(0)
  })

  it('the only gateway on a store in memory ends its sessions', async () => {
    const server = await startScripted(legacy(answerOk, { listen }))
    const only = joinUpstream(new MemoryCluster(), server.url)
    await only.call()
    await only.stop()
    expect(server.of('DELETE')).toHaveLength(1)
  })

  it('a replica that missed its lease ends its calls, but no session that another replica has taken', async () => {
    const hanging: Script = (arrived, response) => {
      if (arrived.body.params?.name === 'hang') openStream(response)
      else answerOk(arrived, response)
    }
    const server = await startScripted(legacy(hanging, { listen }))
    const cluster = new MemoryCluster()
    const [first, second] = [joinUpstream(cluster, server.url), joinUpstream(cluster, server.url)]
    const peer = await first.upstream.open(dedicated)
    const call = exchangeWith(peer, 'tools/call', { caller: dedicated, params: { name: 'hang' } })
    await server.arrived('tools/call')
    await first.records.flush()
    const [{ home } = { home: undefined }] = [...cluster.records.values()]
    cluster.lapse(home ?? '')
    expect((await call.failure()).data).toMatchObject({ reason: 'upstream_lost' })
    await second.call()
    await first.upstream.close()
    expect(server.of('initialize')).toHaveLength(1)
    expect(server.of('DELETE')).toHaveLength(0)
  })

  it('a session that another replica has taken unseen is not ended', async () => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    const [first, second] = [joinUpstream(cluster, server.url), joinUpstream(cluster, server.url)]
    await first.call()
    await first.records.flush()
    for (const record of cluster.records.values()) record.home = undefined // as if its lease had run out
    await second.call()
    await first.upstream.close()
    expect(server.of('DELETE')).toHaveLength(0)
    expect(await second.call()).toEqual({ ok: true })
  })
})

describe('a store', () => {
  /** A store whose operations of these names do something else, from when `isOn` says so. */
  const withFault = (store: StateStore, fault: Partial<StateStore>, isOn = () => true): StateStore =>
    new Proxy(store, {
      get: (target, name) => {
        const value: unknown = Reflect.get(isOn() && name in fault ? fault : target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
  const away = () => Promise.reject(new StateError('away', 'no connection'))

  it('that is away keeps no session from being opened, used and ended', async () => {
    const server = await startScripted(legacy(answerOk))
    const changeStore = (store: StateStore) => withFault(store, { take: away, create: away, write: away })
    const { call, upstream, records } = joinUpstream(new MemoryCluster(), server.url, { changeStore })
    expect(await call()).toEqual({ ok: true })
    await records.flush()
    await upstream.close()
    expect(server.of('DELETE')).toHaveLength(1)
  })

  it('that does not answer is waited for two seconds', async () => {
    const server = await startScripted(legacy(answerOk))
    const changeStore = (store: StateStore) => withFault(store, { take: () => new Promise(() => {}) })
    const { call } = joinUpstream(new MemoryCluster(), server.url, { changeStore })
    const began = Date.now()
    expect(await call()).toEqual({ ok: true })
    expect(Date.now() - began).toBeGreaterThan(1900)
    expect(server.of('initialize')).toHaveLength(1)
  })

  const hangs: Partial<StateStore> = { write: () => new Promise(() => {}) }
  const isAway: Partial<StateStore> = { health: () => ({ ...new MemoryCluster().join().health(), state: 'away' }) }
  it.each([
    ['hangs', hangs],
    ['goes away', isAway],
  ])('that %s while a session ends leaves its end to the sweep', async (_, fault) => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    let isFaulty = false
    const changeStore = (store: StateStore) => withFault(store, fault, () => isFaulty)
    const { call, upstream, records } = joinUpstream(cluster, server.url, { changeStore })
    await call()
    await records.flush()
    isFaulty = true
    await upstream.close()
    expect(server.of('DELETE')).toHaveLength(0)
    expect(cluster.records.size).toBe(1)
    isFaulty = false
    expect(await records.sweep()).toBe(1)
    expect(server.of('DELETE')).toHaveLength(1)
    expect(cluster.records.size).toBe(0)
  })

  it.each([
    ['other replicas use is written', true, 1],
    ['one process uses is not written', false, 0],
  ])('that %s before a session is ended', async (_, isShared, expected) => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    let writes = 0
    const changeStore = (store: StateStore) => {
      const write: StateStore['write'] = (...args) => {
        writes++
        return store.write(...args)
      }
      return withFault(store, { isShared, write })
    }
    const { call, upstream, records } = joinUpstream(cluster, server.url, { changeStore })
    await call()
    await records.flush()
    writes = 0
    await upstream.close()
    await records.close()
    expect(server.of('DELETE')).toHaveLength(1)
    expect(writes).toBe(expected)
    expect(cluster.records.size).toBe(0)
  })

  it('that one process uses is told of a renewed session that its server does not end', async () => {
    const { script, known } = forgetful(refuseWith(404, 'Session not found'))
    const server = await startScripted(script)
    const cluster = new MemoryCluster()
    const changeStore = (store: StateStore) => withFault(store, { isShared: false })
    const { call, upstream, records } = joinUpstream(cluster, server.url, { changeStore, batchMs: 60_000 })
    await call()
    await records.flush()
    known.clear()
    await call()
    server.become((arrived, response) => {
      if (arrived.method === 'DELETE') response.writeHead(503).end()
      else script(arrived, response)
    })
    await upstream.close()
    server.become(script)
    await vi.waitFor(async () => expect(await records.sweep()).toBe(1))
    expect(server.of('DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s2', 's2'])
    expect(cluster.records.size).toBe(0)
  })

  it.each([
    ['never had the record of a lost session leaves its end to the sweep', false, 1],
    ['has the record of a lost session leaves it to the replica that holds it', true, 0],
  ])('that %s', async (_, isStored, ended) => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    let lose: (claim: Claim) => void = () => {}
    let isBack = false
    const onLost: StateStore['onLost'] = listener => {
      lose = listener
      return () => {}
    }
    let [isLost, reads] = [false, 0]
    const read = () => {
      reads++
      return away()
    }
    const changeStore = (store: StateStore) =>
      withFault(withFault(store, { onLost }), { create: away, read }, () => isLost && !isBack)
    const { call, records } = joinUpstream(cluster, server.url, { changeStore })
    await call()
    await records.flush()
    const [record] = [...cluster.records.values()]
    isLost = true
    if (record) lose({ kind: record.kind, id: record.id, epoch: record.epoch })
    if (!isStored) cluster.records.clear()
    await vi.waitFor(() => expect(reads).toBe(1))
    expect(records.size).toBe(0)
    expect(server.of('DELETE')).toHaveLength(0)
    isBack = true
    expect(await records.sweep()).toBe(ended)
    expect(server.of('DELETE')).toHaveLength(ended)
    expect(cluster.records.size).toBe(1 - ended)
  })

  it('that lost the record of a closed session does not keep it from being ended', async () => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    let isFaulty = false
    const changeStore = (store: StateStore) => withFault(store, isAway, () => isFaulty)
    const { call, upstream, records } = joinUpstream(cluster, server.url, { changeStore })
    await call()
    await records.flush()
    isFaulty = true
    await upstream.close()
    expect(server.of('DELETE')).toHaveLength(0)
    cluster.records.clear()
    isFaulty = false
    expect(await records.sweep()).toBe(1)
    expect(server.of('DELETE')).toHaveLength(1)
    expect(cluster.records.size).toBe(0)
  })

  it('that has lost its data gets the records of open sessions again', async () => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.records.flush()
    cluster.records.clear()
    first.records.refresh(true)
    await first.kill()
    await joinUpstream(cluster, server.url).call()
    expect(server.of('initialize')).toHaveLength(1)
  })

  it('that cannot use its database keeps no session from being ended by a planned stop', async () => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    cluster.join()
    const changeStore = (store: StateStore) =>
      withFault(store, { health: () => ({ ...store.health(), state: 'memory-only' }) })
    const only = joinUpstream(cluster, server.url, { changeStore })
    await only.call()
    await only.stop()
    expect(server.of('DELETE')).toHaveLength(1)
  })

  it('keeps a session with a very long handshake only to end it', async () => {
    const long: Script = (arrived, response) => {
      const inner = legacy(answerOk, { capabilities: { tools: {}, experimental: { text: { a: 'x'.repeat(70_000) } } } })
      inner(arrived, response)
    }
    const server = await startScripted(long)
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    expect(cluster.records.size).toBe(1)
    const second = joinUpstream(cluster, server.url)
    await second.call()
    expect(server.of('initialize')).toHaveLength(2)
    await second.records.flush()
    expect(cluster.records.size).toBe(2)
  })

  it('that holds a body of another version is not believed', async () => {
    const server = await startScripted(legacy(answerOk))
    const cluster = new MemoryCluster()
    const first = joinUpstream(cluster, server.url)
    await first.call()
    await first.kill()
    for (const record of cluster.records.values()) record.body = Buffer.from('{"format":99}')
    expect(await joinUpstream(cluster, server.url).call()).toEqual({ ok: true })
    expect(server.of('initialize')).toHaveLength(2)
  })
})

describe('a real server', () => {
  it('sees one session per client over two restarts', async () => {
    const server = await startSdkServer()
    onTestFinished(server.close)
    const cluster = new MemoryCluster()
    const clients = ['a', 'b', 'c'].map(session => sessionCaller(session))
    for (let round = 0; round < 3; round++) {
      const replica = joinUpstream(cluster, server.url)
      for (const client of clients) expect(await replica.call(client, 'tools/list')).toHaveProperty('tools')
      await replica.kill()
    }
    expect(server.journal.entries.filter(({ kind }) => kind === 'opened')).toHaveLength(3)
    expect(server.journal.entries.filter(({ kind }) => kind === 'ended')).toHaveLength(0)
  })
})
