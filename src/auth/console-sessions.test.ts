import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { MemoryCluster } from '../stores/state/memory-state.ts'
import { SILENT } from '../telemetry/log.ts'
import { ConsoleSessions } from './console-sessions.ts'
import { Sealer } from './server/sealer.ts'
import type { Token } from './token.ts'

const HOUR_MS = 60 * 60_000
const ANN: Token = {
  id: 'ann',
  name: 'laptop',
  hash: '',
  principal: 'ann',
  workspaces: ['*'],
  created: '',
  admin: true,
}
const KEY = randomBytes(32)

/** One replica with the store of all. */
const create = (key = KEY, store = new MemoryCluster().join()) => {
  const tokens = new Map([[ANN.id, ANN]])
  const revoked = new Set<() => void>()
  const sessions = new ConsoleSessions({
    sealer: new Sealer([key]),
    documents: store.shared,
    log: SILENT,
    tokenOf: id => tokens.get(id),
    onRevoked: (_id, end) => {
      revoked.add(end)
      return () => void revoked.delete(end)
    },
  })
  const open = () => {
    const session = sessions.open('ann')
    if (!session) throw new Error('no session')
    return { session, cookie: sessions.seal(session).value }
  }
  return { sessions, tokens, revoked, open }
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('a cookie gives the session back, also to a gateway that was restarted', () => {
  const { open } = create()
  const { session, cookie } = open()
  const again = create().sessions.find(cookie)
  expect(again).toMatchObject({ id: session.id, csrf: session.csrf, token: ANN })
})

it('a cookie that was changed, sealed with another secret, or for another use gives none', () => {
  const { sessions, open } = create()
  const { session, cookie } = open()
  expect(create(randomBytes(32)).sessions.find(cookie)).toBeUndefined()
  expect(sessions.find(`${cookie.slice(0, -2)}${cookie.endsWith('AA') ? 'BB' : 'AA'}`)).toBeUndefined()
  for (const wrong of ['', 'x', sessions.createMcpToken(session).slice('drg_console.'.length)])
    expect(sessions.find(wrong)).toBeUndefined()
  expect(sessions.findMcpToken(`drg_console.${cookie}`)).toBeUndefined()
})

it('a session ends after twelve hours without use, and after a week in any case', () => {
  const { sessions, open } = create()
  const first = open().cookie
  vi.advanceTimersByTime(13 * HOUR_MS)
  expect(sessions.find(first)).toBeUndefined()

  let { cookie } = open()
  for (let hours = 0; hours < 160; hours += 10) {
    vi.advanceTimersByTime(10 * HOUR_MS)
    const session = sessions.find(cookie)
    expect(session, `after ${hours} hours`).toBeDefined()
    if (session) cookie = sessions.seal(session).value
  }
  vi.advanceTimersByTime(10 * HOUR_MS)
  expect(sessions.find(cookie)).toBeUndefined()
})

it('a session ends with its token, and by sign-out; those who wait for that are told once', async () => {
  const { sessions, tokens, revoked, open } = create()
  const [some, other] = [open(), open()]
  const ended: string[] = []
  const follow = (name: string, { cookie }: typeof some) => {
    const session = sessions.find(cookie)
    return session ? sessions.onEnded(session, () => ended.push(name)) : undefined
  }
  follow('some', some)
  follow('other', other)
  follow('released', some)?.()
  await sessions.end(some.session)
  expect([sessions.find(some.cookie), sessions.find(other.cookie)?.id]).toEqual([undefined, other.session.id])
  tokens.delete('ann')
  for (const end of revoked) end()
  expect(sessions.find(other.cookie)).toBeUndefined()
  vi.advanceTimersByTime(13 * HOUR_MS)
  expect(ended).toEqual(['some', 'other'])
  expect(revoked.size).toBe(0)
})

it('what waits for the end of a session is told when its time is over', () => {
  const { sessions, open } = create()
  const session = sessions.find(open().cookie)
  const end = vi.fn()
  if (session) sessions.onEnded(session, end)
  vi.advanceTimersByTime(12 * HOUR_MS - 1000)
  expect(end).not.toHaveBeenCalled()
  vi.advanceTimersByTime(2000)
  expect(end).toHaveBeenCalledOnce()
})

it('the token for /mcp stands for another one, for ten minutes, and ends with it', () => {
  const { sessions, tokens, open } = create()
  const secret = sessions.createMcpToken(open().session)
  expect(sessions.findMcpToken(secret)).toBe(ANN)
  tokens.delete('ann')
  expect(sessions.findMcpToken(secret)).toBeUndefined()
  tokens.set('ann', ANN)
  vi.advanceTimersByTime(11 * 60_000)
  expect(sessions.findMcpToken(secret)).toBeUndefined()
})

it('the token for /mcp ends when its session is signed out, and no other', async () => {
  const { sessions, open } = create()
  const [left, kept] = [open().session, open().session]
  const secrets = [left, kept].map(session => sessions.createMcpToken(session))
  await sessions.end(left)
  expect(secrets.map(secret => sessions.findMcpToken(secret))).toEqual([undefined, ANN])
})

it('an expired token opens no session', () => {
  const { sessions, tokens } = create()
  tokens.set('ann', { ...ANN, expires: new Date(Date.now() - 1).toISOString() })
  expect([sessions.open('ann'), sessions.open('unknown')]).toEqual([undefined, undefined])
})

it('the code of a link works once, within ten minutes, at any replica, and only if the store can tell', async () => {
  const cluster = new MemoryCluster()
  const stores = [cluster.join(), cluster.join()] as const
  const [one, other] = stores.map(store => create(KEY, store).sessions.codes)
  if (!one || !other) throw new Error('no replicas')
  const { code } = one.create()
  expect(
    await Promise.all([one.take('wrong'), other.take(`${code}A`), create(randomBytes(32)).sessions.codes.take(code)]),
  ).toEqual([false, false, false])
  const taken = await Promise.all([one.take(code), other.take(code)])
  expect(taken.toSorted()).toEqual([false, true])
  expect([await one.take(code), await other.take(code)]).toEqual([false, false])
  const late = one.create().code
  vi.advanceTimersByTime(10 * 60_000 + 1)
  expect(await one.take(late)).toBe(false)
  vi.spyOn(stores[0].shared, 'document').mockRejectedValue(new Error('away'))
  await expect(one.take(one.create().code)).rejects.toThrow('away')
})

it('a sign-out ends the session at other replicas, also what waits there, and stays after a restart', async () => {
  const cluster = new MemoryCluster()
  const store = cluster.join()
  const [one, other] = [create(KEY, store), create(KEY, cluster.join())]
  const { session, cookie } = one.open()
  const there = other.sessions.find(cookie)
  if (!there) throw new Error('the other replica does not know the session')
  const end = vi.fn()
  other.sessions.onEnded(there, end)
  await one.sessions.end(session)
  await vi.waitFor(() => expect(end).toHaveBeenCalledOnce())
  expect(other.sessions.find(cookie)).toBeUndefined()
  const restarted = create(KEY, store)
  await vi.waitFor(() => expect(restarted.sessions.find(cookie)).toBeUndefined())
})

it('a sign-out while the store is away ends the session here', async () => {
  const store = new MemoryCluster().join()
  const { sessions, open } = create(KEY, store)
  const { session, cookie } = open()
  vi.spyOn(store.shared, 'document').mockRejectedValue(new Error('away'))
  await sessions.end(session)
  expect(sessions.find(cookie)).toBeUndefined()
})
