import { describe, expect, it, onTestFinished } from 'vitest'
import { FakeSession } from '../../../test/support/fake-session.ts'
import { answerWith, connectScripted } from '../../../test/support/remote-upstream.ts'
import {
  callerOf,
  exchangeWith,
  legacy,
  openStream,
  result,
  type Script,
  sendJson,
} from '../../../test/support/scripted-server.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import type { RemoteOptions } from '../connect-remote.ts'
import { poolPlace, SessionPool } from './pool.ts'

const SESSIONS = Array.from({ length: 20 }, (_, i) => `s${i + 1}`)

const answerOk = answerWith({})

const connect = async (script: Script = answerOk, options: Partial<RemoteOptions> = {}) => {
  const { server, upstream } = await connectScripted(legacy(script, { sessions: SESSIONS }), { era: 'legacy' }, options)
  /** The session a call of that caller runs in. */
  const sessionOf = async (caller: Caller) => {
    const before = server.of('tools/list').length
    await exchangeWith(await upstream.open(caller), 'tools/list', { caller }).result()
    return server.of('tools/list')[before]?.headers['mcp-session-id']
  }
  return { server, upstream, sessionOf }
}

describe('which session a caller gets', () => {
  const ana = callerOf({ principal: 'ana' })

  it('its own for every client session', async () => {
    const { sessionOf } = await connect()
    const one = callerOf({ session: 'a' })
    const two = callerOf({ session: 'b' })
    expect([await sessionOf(one), await sessionOf(two), await sessionOf(one)]).toEqual(['s1', 's2', 's1'])
  })

  it('the same for a principal with the same capabilities, however they are written', async () => {
    const { sessionOf } = await connect()
    const text = (json: string) => ({ ...ana, capabilities: Json.parse(Buffer.from(json)) })
    expect([
      await sessionOf(text('{"roots":{},"elicitation":{"form":{},"url":{}}}')),
      await sessionOf(text('{"elicitation":{"url":{}, "form":{}},"roots":{}}')),
      await sessionOf(text('{"elicitation":{"form":{}},"roots":{}}')),
    ]).toEqual(['s1', 's1', 's2'])
  })

  it('never that of another principal or workspace', async () => {
    const { sessionOf } = await connect()
    const sessions = [
      await sessionOf(ana),
      await sessionOf({ ...ana, principal: 'ben' }),
      await sessionOf({ ...ana, workspace: 'other' }),
      await sessionOf({ ...ana, session: 'ana' }),
    ]
    expect(new Set(sessions).size).toBe(4)
  })

  it('one shared by calls that come together', async () => {
    const { server, upstream } = await connect()
    const peers = await Promise.all([upstream.open(ana), upstream.open(ana), upstream.open(ana)])
    expect(new Set(peers).size).toBe(1)
    expect(server.of('initialize')).toHaveLength(1)
  })

  it('one for a single request of an anonymous caller', async () => {
    const { server, sessionOf } = await connect()
    const anonymous = callerOf({ principal: undefined })
    expect([await sessionOf(anonymous), await sessionOf(anonymous)]).toEqual(['s1', 's2'])
    await server.arrived('DELETE', 2)
    expect(server.of('DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s1', 's2'])
  })

  it('closes the session of an anonymous caller that cancels', async () => {
    const { server, upstream } = await connect(({ body }, response) => {
      if (body.method === 'tools/call') openStream(response)
      else response.writeHead(202).end()
    })
    const anonymous = callerOf({ principal: undefined })
    const call = exchangeWith(await upstream.open(anonymous), 'tools/call', { caller: anonymous })
    await server.arrived('tools/call')
    call.abort.abort({ kind: 'gone' })
    await server.arrived('notifications/cancelled')
    await server.arrived('DELETE')
  })
})

describe('the session of an anonymous caller', () => {
  const anonymous = callerOf({ principal: undefined, capabilities: Json.of({ roots: {} }) })
  const LISTEN = 'subscriptions/listen'

  /** Another session is opened, used and closed: one that was going to close has closed before. */
  const anotherCloses = async ({ server, upstream }: Awaited<ReturnType<typeof connect>>): Promise<void> => {
    await exchangeWith(await upstream.open(anonymous), 'tools/list', { caller: anonymous }).result()
    await server.arrived('DELETE')
    expect(server.of('DELETE')).toHaveLength(1)
  }

  it('serves every request that follows from one request of the client', async () => {
    const { server, upstream } = await connect()
    const peer = await upstream.open(anonymous)
    const listen = exchangeWith(peer, LISTEN, { caller: anonymous })
    await exchangeWith(peer, 'logging/setLevel', { caller: anonymous }).result()
    expect(await exchangeWith(peer, 'tools/call', { caller: anonymous }).result()).toEqual({})
    await server.arrived('DELETE')
    expect(server.of('POST').flatMap(({ headers }) => headers['mcp-session-id'] ?? [])).not.toContain('s2')
    expect(await listen.result()).toEqual({ resultType: 'complete' })
  })

  it('lasts as long as its longest request', async () => {
    const connected = await connect(({ body }, response) => {
      if (body.method !== 'tools/call') answerOk({ body } as Parameters<Script>[0], response)
    })
    const { server, upstream } = connected
    const peer = await upstream.open(anonymous)
    const call = exchangeWith(peer, 'tools/call', { caller: anonymous })
    const { response, body } = await server.arrived('tools/call')
    await exchangeWith(peer, 'tools/list', { caller: anonymous }).result()
    await anotherCloses(connected)
    sendJson(response, result(body.id, { done: true }))
    expect(await call.result()).toEqual({ done: true })
    await server.arrived('DELETE', 2)
  })

  it('lasts as long as its caller listens, if that is all it asked for', async () => {
    const connected = await connect()
    const { server, upstream } = connected
    const listen = exchangeWith(await upstream.open(anonymous), LISTEN, { caller: anonymous })
    await anotherCloses(connected)
    listen.abort.abort({ kind: 'gone' })
    await server.arrived('DELETE', 2)
  })

  it('lasts as long as its caller listens to a resource', async () => {
    const connected = await connect()
    const { server, upstream } = connected
    const peer = await upstream.open(anonymous)
    const listen = exchangeWith(peer, LISTEN, { caller: anonymous })
    await exchangeWith(peer, 'resources/subscribe', { caller: anonymous, params: { uri: 'a:b' } }).result()
    await anotherCloses(connected)
    listen.abort.abort({ kind: 'gone' })
    await server.arrived('DELETE', 2)
  })

  it('is over after a notification', async () => {
    const { server, upstream } = await connect()
    const peer = await upstream.open(anonymous)
    exchangeWith(peer, 'notifications/roots/list_changed', { kind: 'notification', caller: anonymous })
    await server.arrived('DELETE')
  })
})

describe('idle sessions', () => {
  it('are ended, and busy ones are not', async () => {
    const { server, upstream } = await connect(
      ({ body }, response) => {
        if (body.method === 'tools/call') openStream(response)
        else answerOk({ body } as Parameters<Script>[0], response)
      },
      { idleMs: 60 },
    )
    const idle = callerOf({ session: 'idle' })
    const busy = callerOf({ session: 'busy' })
    const watching = callerOf({ session: 'watching' })
    await exchangeWith(await upstream.open(idle), 'tools/list', { caller: idle }).result()
    exchangeWith(await upstream.open(busy), 'tools/call', { caller: busy })
    exchangeWith(await upstream.open(watching), 'subscriptions/listen', { caller: watching })
    await server.arrived('DELETE')
    const later = callerOf({ session: 'later' })
    await exchangeWith(await upstream.open(later), 'tools/list', { caller: later }).result()
    await server.arrived('DELETE', 2)
    expect(server.of('DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s1', 's4'])
  })
})

it('tries again after a session that could not be opened', async () => {
  const { server, upstream } = await connect(answerOk, { backoffMs: 1 })
  server.become((_, response) => void response.writeHead(503).end())
  await expect(upstream.open(callerOf())).rejects.toThrow('HTTP 503')
  server.become(legacy(answerOk))
  await expect.poll(async () => (await upstream.open(callerOf()).catch(() => undefined))?.revision).toBe('2025-11-25')
})

describe('closing', () => {
  /** A server that takes its time to end some sessions. */
  const slowToEnd = (slow: readonly unknown[], ended: (session: unknown) => void): Script => {
    const talk = legacy(answerOk, { sessions: SESSIONS })
    return (arrived, response) => {
      if (arrived.method !== 'DELETE') return talk(arrived, response)
      const session = arrived.headers['mcp-session-id']
      setTimeout(() => response.writeHead(204).end(() => ended(session)), slow.includes(session) ? 200 : 0)
    }
  }

  it('waits until every session has ended at the server, also those that were being closed', async () => {
    const { server, upstream } = await connect()
    const ended: unknown[] = []
    server.become(slowToEnd(['s1', 's3'], session => ended.push(session))) // those that leave by themselves
    const [one, two, three, anonymous] = [
      callerOf({ session: 'one' }),
      callerOf({ session: 'two' }),
      callerOf({ session: 'three' }),
      callerOf({ principal: undefined }),
    ]
    const listen = exchangeWith(await upstream.open(one), 'subscriptions/listen', { caller: one })
    await upstream.open(two)
    await exchangeWith(await upstream.open(anonymous), 'tools/list', { caller: anonymous }).result()
    const opening = upstream.open(three).catch(() => undefined)
    await server.arrived('initialize', 4)
    listen.abort.abort({ kind: 'gone' })
    await upstream.close()
    await opening
    expect(ended.sort()).toEqual(['s1', 's2', 's3', 's4'])
  })

  it('also ends the session that replaces one the server forgot', async () => {
    const { server, upstream } = await connect()
    const peer = await upstream.open(callerOf({ session: 'one' }))
    const [talk, held] = [legacy(answerOk, { sessions: ['s2'] }), [] as (() => void)[]]
    server.become((arrived, response) => {
      const isOld = arrived.headers['mcp-session-id'] === 's1'
      if (isOld) return void response.writeHead(404).end()
      if (arrived.body.method === 'initialize') held.push(() => talk(arrived, response))
      else talk(arrived, response)
    })
    exchangeWith(peer, 'tools/list')
    await server.arrived('initialize', 2)
    const closing = upstream.close()
    await server.arrived('DELETE')
    held[0]?.()
    await closing
    expect(server.of('DELETE').map(({ headers }) => headers['mcp-session-id'])).toEqual(['s1', 's2'])
  })
})

describe('a pool that is full', () => {
  /** A pool of few sessions, which only remember that they were closed. */
  const small = (perPrincipal: number) => {
    const closed: string[] = []
    const opened: FakeSession[] = []
    const pool = new SessionPool({
      name: 'far',
      idleMs: 60_000,
      placeOf: caller => poolPlace(caller),
      perPrincipal,
      open: async ({ principal, affinity }, { onClosed }) => {
        const session = new FakeSession(async () => {
          closed.push(`${principal} ${affinity}`)
          onClosed(Promise.resolve())
        })
        opened.push(session)
        return session
      },
    })
    onTestFinished(() => pool.close())
    return { pool, closed, opened }
  }
  const of = (principal: string, affinity: number) => callerOf({ principal, affinity: String(affinity) })
  /** As if they had been idle for a while. */
  const age = (sessions: readonly FakeSession[]) => {
    for (const [at, session] of sessions.entries()) session.lastUsed = Date.now() - 10_000 + at
  }

  it('closes no session that a caller was given just now', async () => {
    const { pool, closed } = small(1)
    await pool.open(of('ana', 1))
    const opening = pool.open(of('ana', 2))
    await pool.find(of('ana', 1))
    expect(closed).toEqual([])
    await opening
    expect(closed).toEqual(['ana 1']) // a while later, because no request was sent on it
  })

  it('closes the oldest idle session of the same principal', async () => {
    const { pool, closed, opened } = small(2)
    for (const caller of [of('ben', 1), of('ana', 1), of('ana', 2)]) await pool.open(caller)
    age(opened)
    await pool.open(of('ana', 3))
    expect(closed).toEqual(['ana 1'])
  })

  it('closes idle sessions if the capabilities of their clients take too much memory', async () => {
    const { pool, closed, opened } = small(256)
    const large = (affinity: number) => ({
      ...of('ana', affinity),
      capabilities: Json.of({ experimental: { pad: 'x'.repeat(64 * 1024) } }),
    })
    for (let i = 0; i < 100; i++) {
      await pool.open(large(i))
      age(opened)
    }
    expect(pool.size).toBeLessThan(40)
    expect(closed[0]).toBe('ana 0')
  })

  it('never makes a principal wait for the sessions of another', async () => {
    const { pool, closed, opened } = small(8)
    for (let i = 0; i < 8; i++) for (const principal of ['p1', 'p2', 'p3', 'p4']) await pool.open(of(principal, i))
    for (const session of opened) session.isBusy = true
    let isRefused = false
    const waiting = pool.open(of('p1', 8)).catch(() => {
      isRefused = true
    })
    await pool.open(of('ana', 1)) // settles although all sessions are busy and p1 waits
    expect([isRefused, closed]).toEqual([false, []])
    for (const session of opened.slice(0, 32)) session.isBusy = false
    age(opened.slice(0, 32))
    await waiting
    expect(closed).toEqual(['p1 0'])
  })

  it('takes room for a newcomer from the principal with the most sessions', async () => {
    const { pool, closed, opened } = small(2)
    for (const caller of [of('p1', 1), of('p2', 1), of('p3', 1), of('p3', 2), of('p4', 1), of('p5', 1), of('p6', 1)])
      await pool.open(caller)
    await pool.open(of('p7', 1))
    age(opened)
    await pool.open(of('p8', 1))
    expect(closed).toEqual(['p3 1'])
  })
})

const PAD = 'x'.repeat(1 << 20)
const bodyWith = (member: object): Json =>
  Json.parse(Buffer.from(JSON.stringify({ member, PAD }))).get('member') as Json

it('a session keeps its caller, and not the request it was opened for', async () => {
  const opened: Caller[] = []
  const pool = new SessionPool({
    name: 'far',
    idleMs: 60_000,
    placeOf: requester => poolPlace(requester),
    open: async (caller, { onClosed }) => {
      opened.push(caller)
      return new FakeSession(async () => onClosed(Promise.resolve()))
    },
  })
  onTestFinished(() => pool.close())
  await pool.open(callerOf({ capabilities: bodyWith({ roots: {} }), info: bodyWith({ name: 'c' }) }))
  const [kept] = opened
  expect(kept?.capabilities.toString()).toBe('{"roots":{}}')
  expect(kept?.info?.toString()).toBe('{"name":"c"}')
  expect(kept?.capabilities.retained).toBeLessThan(1024)
  expect(kept?.info?.retained).toBeLessThan(1024)
})
