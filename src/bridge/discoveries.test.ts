import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { NEVER } from '../protocol/cancellation.ts'
import type { Caller, Exchange, Peer } from '../protocol/exchange.ts'
import { MODERN, NEWEST_LEGACY, REVISIONS } from '../protocol/revisions.ts'
import { Json, type PlainObject } from '../wire/json/json.ts'
import { createBridge } from './bridge.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const OLDER = REVISIONS[2]

/** A modern server that counts what it is asked, behind the bridge; its answers carry these caching hints, the last ones again. */
const server = (...hintsOf: PlainObject[]) => {
  let asked = 0
  const peer: Peer = {
    revision: MODERN,
    asks: false,
    dispatch: ({ sink }) => {
      const hints = hintsOf[asked] ?? hintsOf.at(-1)
      const result = Json.of({ resultType: 'complete', capabilities: { tools: {} }, count: ++asked, ...hints })
      void sink({ kind: 'result', result })
    },
  }
  const bridge = createBridge({ questionTtlMs: 60_000 })
  const upstream = bridge.wrap({ open: async () => peer, close: async () => {} }, 's')
  /** Which answer of the server the caller gets. */
  const discover = async (over: Partial<Caller> = {}, params = Json.empty, method = 'server/discover') => {
    const caller: Caller = {
      workspace: 'w',
      principal: 'ann',
      revision: NEWEST_LEGACY,
      capabilities: Json.empty,
      session: 'x',
      headers: new Map(),
      ...over,
    }
    let count: number | undefined
    const exchange: Exchange = {
      kind: 'request',
      method,
      params,
      caller,
      signal: NEVER,
      sink: frame => {
        if (frame.kind !== 'result') throw new Error(frame.kind)
        expect(frame.result.has('ttlMs')).toBe(caller.revision === MODERN && hintsOf.some(hints => 'ttlMs' in hints))
        count = frame.result.get('count')?.asNumber()
      },
    }
    ;(await upstream.open(caller)).dispatch(exchange)
    return count
  }
  return { discover }
}

const PUBLIC = { ttlMs: 30_000, cacheScope: 'public' }

test('an answer that may be cached serves the sessions that begin while it is fresh', async () => {
  const { discover } = server(PUBLIC)
  expect(await discover({ session: 'a' })).toBe(1)
  expect(await discover({ session: 'b', principal: 'bob' })).toBe(1)
  expect(await discover({ session: 'c', principal: undefined })).toBe(1)
  vi.advanceTimersByTime(30_000)
  expect(await discover({ session: 'd' })).toBe(2)
})

test('no answer is kept for more than a minute', async () => {
  const { discover } = server({ ...PUBLIC, ttlMs: 86_400_000 })
  await discover()
  vi.advanceTimersByTime(59_999)
  expect(await discover()).toBe(1)
  vi.advanceTimersByTime(1)
  expect(await discover()).toBe(2)
})

test('a private answer serves its principal alone, and no anonymous client', async () => {
  const { discover } = server({ ttlMs: 30_000, cacheScope: 'private' })
  expect(await discover()).toBe(1)
  expect(await discover({ session: 'y' })).toBe(1)
  expect(await discover({ principal: 'bob' })).toBe(2)
  expect(await discover({ principal: undefined })).toBe(3)
  expect(await discover({ principal: undefined })).toBe(4)
})

test('a private answer serves its principal also after a public one has expired', async () => {
  const { discover } = server({ ttlMs: 10_000, cacheScope: 'public' }, { ttlMs: 30_000, cacheScope: 'private' })
  expect([await discover(), await discover()]).toEqual([1, 1])
  vi.advanceTimersByTime(10_000)
  expect([await discover(), await discover()]).toEqual([2, 2])
})

test('anonymous clients with ever other capabilities do not evict the answers of others', async () => {
  const { discover } = server(PUBLIC)
  expect(await discover()).toBe(1)
  for (let at = 0; at < 1000; at++) await discover({ principal: undefined, capabilities: Json.of({ at }) })
  expect(await discover()).toBe(1)
})

test.each<[string, PlainObject]>([
  ['no hints', {}],
  ['a time of zero', { ttlMs: 0, cacheScope: 'public' }],
  ['a time that is none', { ttlMs: 'long', cacheScope: 'public' }],
  ['more than 64 KiB', { ...PUBLIC, instructions: 'x'.repeat(64 * 1024) }],
])('an answer with %s is asked for each time', async (_name, hints) => {
  const { discover } = server(hints)
  expect([await discover(), await discover()]).toEqual([1, 2])
})

test.each<[string, Partial<Caller>]>([
  ['other capabilities', { capabilities: Json.of({ sampling: {} }) }],
  ['another revision', { revision: OLDER }],
])('a client with %s gets an answer of its own', async (_name, other) => {
  const { discover } = server(PUBLIC)
  expect([await discover(), await discover(other), await discover(), await discover(other)]).toEqual([1, 2, 1, 2])
})

test('modern clients, requests with params and other methods reach the server', async () => {
  const { discover } = server(PUBLIC)
  expect(await discover()).toBe(1)
  expect(await discover({ revision: MODERN })).toBe(2)
  expect(await discover({}, Json.of({ detail: true }))).toBe(3)
  expect(await discover({}, Json.empty, 'ping')).toBe(4)
})
