import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { callerOf } from '../../../test/support/workspace.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { Json } from '../../wire/json/json.ts'
import { CacheEntry } from './cache-entry.ts'
import { CacheScopes } from './cache-scopes.ts'
import { CACHE_TIMES } from './freshness.ts'

const createScopes = () =>
  new CacheScopes<string>(() => new CacheEntry({ times: CACHE_TIMES, isEqual: (a, b) => a === b, onChange: () => {} }))
const fetched = (value: string, isPublic = false) => ({ value, ttlMs: 1000, isPublic })
const withCapabilities = (...names: string[]) => Json.of(Object.fromEntries(names.map(name => [name, {}])))

test('a value of one principal is never found by another, unless it is public', () => {
  const step = fc.record({
    principal: fc.constantFrom('ann', 'bob', undefined),
    session: fc.constantFrom(undefined, 's1', 's2'),
    capability: fc.constantFrom('roots', 'sampling'),
    key: fc.constantFrom('k1', 'k2'),
    what: fc.constantFrom('store', 'store', 'publish', 'fork', 'look'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), steps => {
      const all = createScopes()
      for (const { principal, session, capability, key, what } of steps) {
        const caller = callerOf({
          principal,
          session: session && `${principal}-${session}`,
          capabilities: withCapabilities(capability),
        })
        const entry = all.find(caller, key)
        if (what === 'store' && entry.value?.startsWith('public') !== true)
          entry.store(fetched(`${principal} ${capability} ${key}`))
        if (what === 'publish') all.publish(caller, key, fetched(`public ${capability} ${key}`, true))
        if (what === 'fork' && caller.session !== undefined) all.forkForSession(caller, caller.session, key)
        const value = all.find(caller, key).value ?? ''
        expect([`${principal} ${capability} ${key}`, `public ${capability} ${key}`, '']).toContain(value)
      }
    }),
  )
})

test('a legacy caller does not find lists of the modern era, public or not', () => {
  const all = createScopes()
  const [modern, legacy] = [callerOf({ revision: '2026-07-28' }), callerOf({ revision: '2025-11-25' })]
  all.find(modern, 'own').store(fetched('44 tools'))
  all.publish(modern, 'open', fetched('44 tools', true))
  expect([all.find(legacy, 'own').value, all.find(legacy, 'open').value]).toEqual([undefined, undefined])
  all.find(legacy, 'own').store(fetched('45 tools'))
  expect([all.find(modern, 'own').value, all.find(legacy, 'own').value]).toEqual(['44 tools', '45 tools'])
  expect(all.find(callerOf({ revision: '2024-11-05' }), 'own').value).toBe('45 tools')
})

test('a session scope starts with the values of its principal, changes alone, and ends without a trace', () => {
  const all = createScopes()
  const [one, two] = [callerOf({ session: 's1' }), callerOf({ session: 's2' })]
  all.find(one, 'k').store(fetched('shared'))
  const own = all.forkForSession(one, 's1', 'k')
  expect(own.value).toBe('shared')
  own.store(fetched('own'))
  expect([all.find(one, 'k').value, all.find(two, 'k').value]).toEqual(['own', 'shared'])
  all.endSession('s1')
  expect(all.find(one, 'k').value).toBe('shared')
  expect(all.hasSessionEntries(one)).toBe(false)
})

test('a value that is no longer public is removed for all', () => {
  const all = createScopes()
  const [ann, bob] = [callerOf(), callerOf({ principal: 'bob' })]
  all.publish(ann, 'k', fetched('open', true))
  expect(all.find(bob, 'k').value).toBe('open')
  all.publish(ann, 'k', fetched('closed'))
  expect(all.find(bob, 'k').value).toBeUndefined()
})

test('a copy has the values of the chosen keys, those of sessions included', () => {
  const [before, after] = [createScopes(), createScopes()]
  const [caller, other] = [callerOf({ session: 's' }), callerOf({ session: 't' })]
  before.find(caller, 'k').store(fetched('kept'))
  before.find(caller, 'other').store(fetched('left'))
  before.forkForSession(caller, 's', 'k').store(fetched('own'))
  after.copyFrom(before, key => key === 'k')
  expect([after.find(caller, 'k').value, after.find(caller, 'other').value]).toEqual(['own', undefined])
  expect(after.find(other, 'k').value).toBe('kept')
  after.endSession('s')
  expect(after.find(caller, 'k').value).toBe('kept')
})

test('there are never more than a thousand owners', () => {
  const all = createScopes()
  for (let i = 0; i < 3000; i++) all.find(callerOf({ principal: `p${i}` }), 'k').store(fetched('x'))
  expect(all.entriesOf('k')).toHaveLength(1000)
})

test('a principal with many sets of capabilities evicts its own lists, not those of others', () => {
  const all = createScopes()
  const other = callerOf({ principal: 'other' })
  all.find(other, 'k').store(fetched('kept'))
  all.publish(other, 'public', fetched('kept too', true))
  for (let i = 0; i < 3000; i++) {
    const caller = callerOf({ principal: 'many', capabilities: withCapabilities(`c${i}`) })
    all.find(caller, 'k').store(fetched('x'))
    all.publish(caller, 'public', fetched('y', true))
  }
  expect(all.entriesOf('k')).toHaveLength(65)
  expect(all.entriesOf('public')).toHaveLength(65)
  expect([all.find(other, 'k').value, all.find(other, 'public').value]).toEqual(['kept', 'kept too'])
})

test('all values together are bounded by bytes', () => {
  vi.useFakeTimers({ now: 0 })
  const all: CacheScopes<{ bytes: number }> = new CacheScopes(
    () => new CacheEntry({ times: CACHE_TIMES, isEqual: (a, b) => a === b, onChange: () => all.trim() }),
    { bytesOf: ({ bytes }) => bytes, mostBytes: 1000 },
  )
  const tell = (principal: string, value: { bytes: number }) => {
    vi.advanceTimersByTime(1000)
    all.find(callerOf({ principal }), 'k').store({ value, ttlMs: undefined, isPublic: false })
  }
  const shared = { bytes: 400 } // counted once
  for (const principal of ['a', 'b', 'c', 'd']) tell(principal, shared)
  expect(all.entriesOf('k')).toHaveLength(4)
  tell('e', { bytes: 500 })
  expect(all.entriesOf('k')).toHaveLength(5)
  tell('f', { bytes: 300 })
  expect(all.entriesOf('k').map(({ value }) => value?.bytes)).toEqual([500, 300])
  tell('g', { bytes: 5000 }) // the latest stays, however large
  expect(all.entriesOf('k').map(({ value }) => value?.bytes)).toEqual([5000])
  vi.useRealTimers()
})

const sized = () => {
  vi.useFakeTimers({ now: 0 })
  onTestFinished(() => void vi.useRealTimers())
  const all: CacheScopes<{ bytes: number }> = new CacheScopes(
    () => new CacheEntry({ times: CACHE_TIMES, isEqual: (a, b) => a === b, onChange: () => all.trim() }),
    { bytesOf: ({ bytes }) => bytes, mostBytes: 1000 },
  )
  return all
}
const ofSize = (bytes: number) => ({ value: { bytes }, ttlMs: undefined, isPublic: false })
const heldBytes = (all: CacheScopes<{ bytes: number }>) => all.entriesOf('k').map(({ value }) => value?.bytes)

test('lists that arrive at once are trimmed a second later, without a further one', () => {
  const all = sized()
  for (const principal of ['a', 'b', 'c']) all.find(callerOf({ principal }), 'k').store(ofSize(600))
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(1000)
  expect(heldBytes(all)).toEqual([600])
  expect(vi.getTimerCount()).toBe(0)
  all.find(callerOf(), 'k').store(ofSize(1))
  all.clear()
  expect(vi.getTimerCount()).toBe(0)
})

test('the lists of sessions count, and a session that loses its lists keeps its scope', () => {
  const all = sized()
  const sessions = ['s1', 's2', 's3'].map(session => ({ session, caller: callerOf({ session }) }))
  for (const { session, caller } of sessions) all.forkForSession(caller, session, 'k').store(ofSize(600))
  vi.advanceTimersByTime(1000)
  const own = sessions.map(({ caller }) => all.find(caller, 'k').value?.bytes)
  expect(own).toEqual([undefined, undefined, 600])
  expect(sessions.map(({ caller }) => all.isSessionEntry(caller, 'k'))).toEqual([true, true, true])
})

test('the least recently used entry is evicted first', () => {
  const left: string[] = []
  const map = new BoundedCache<string>(2, 1000, { onEvict: value => left.push(value) })
  map.set('a', '1')
  map.set('b', '2')
  map.get('a')
  map.set('c', '3')
  expect(left).toEqual(['2'])
  expect(map.entries()).toEqual([
    ['a', '1'],
    ['c', '3'],
  ])
  map.clear()
  expect(map.size).toBe(0)
})
