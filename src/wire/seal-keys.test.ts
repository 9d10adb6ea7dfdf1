import { expect, test } from 'vitest'
import { seal, unseal } from './seal.ts'
import { createKeyring } from './seal-keys.ts'

const HOUR = 3_600_000

const start = (everyMs = 6 * HOUR, keepMs = HOUR) => {
  let at = 1_000_000
  const keys = createKeyring({ everyMs, keepMs, now: () => at })
  const pass = (ms: number): void => {
    at += ms
  }
  return { keys, pass }
}
const idOf = (sealed: string) => sealed.slice(0, sealed.indexOf('.'))

test('a key is used until its time is over, then a new one is', () => {
  const { keys, pass } = start()
  const first = idOf(seal(keys(), 'x'))
  pass(6 * HOUR - 1)
  expect(idOf(seal(keys(), 'x'))).toBe(first)
  pass(1)
  expect(idOf(seal(keys(), 'x'))).not.toBe(first)
})

test('what was sealed just before the change opens as long as it can live, and no longer', () => {
  const { keys, pass } = start()
  pass(6 * HOUR - 1)
  const sealed = seal(keys(), 'state')
  pass(1)
  expect(unseal(keys(), sealed)?.toString()).toBe('state')
  pass(HOUR - 1)
  expect(unseal(keys(), sealed)?.toString()).toBe('state')
  pass(1)
  expect(unseal(keys(), sealed)).toBeUndefined()
})

test('where things live longer than keys are used, several old keys open, each with its own id', () => {
  const { keys, pass } = start(HOUR, 3 * HOUR)
  const sealed = Array.from({ length: 3 }, (_, i) => {
    pass(HOUR)
    return seal(keys(), `state ${i}`)
  })
  expect(new Set(sealed.map(idOf)).size).toBe(3)
  expect(sealed.map(text => unseal(keys(), text)?.toString())).toEqual(['state 0', 'state 1', 'state 2'])
})

test('keys do not pile up, however long it runs', () => {
  const { keys, pass } = start(HOUR, 2 * HOUR)
  for (let hour = 0; hour < 1000; hour++) {
    pass(HOUR)
    seal(keys(), 'x')
  }
  expect(keys().older?.length).toBeLessThanOrEqual(2)
  pass(2 * HOUR)
  seal(keys(), 'x')
  expect(keys().older).toHaveLength(1)
})

test('a long sleep ends the key it began with', () => {
  const { keys, pass } = start()
  const sealed = seal(keys(), 'x')
  pass(100 * HOUR)
  const now = seal(keys(), 'y')
  expect(idOf(now)).not.toBe(idOf(sealed))
  expect(unseal(keys(), now)?.toString()).toBe('y')
})
