import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { createKeyring, type Keyring, type SealKey, seal, unseal } from './seal.ts'

const key = (id: string): SealKey => ({ id, key: randomBytes(32) })
const first = key('k1')
const ring: Keyring = { current: first }

describe('seal', () => {
  it('opens what it sealed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.string({ unit: 'grapheme' }), (bytes, text) => {
        expect(unseal(ring, seal(ring, bytes))).toEqual(Buffer.from(bytes))
        expect(unseal(ring, seal(ring, text))?.toString()).toBe(text)
      }),
    )
  })

  it('names the key and is safe in a URL and in a header', () => {
    expect(seal(ring, 'x'.repeat(50))).toMatch(/^k1\.[A-Za-z0-9_-]+$/)
  })

  it('never writes the same thing twice', () => {
    expect(new Set(Array.from({ length: 100 }, () => seal(ring, 'same'))).size).toBe(100)
  })

  it('opens nothing that differs in a single character, is cut, prolonged, or moved to another key', () => {
    const sealed = seal(ring, 'some state')
    const same: Keyring = { current: { id: 'k2', key: first.key } }
    for (let at = 0; at < sealed.length; at++)
      for (const other of ['A', 'B', '_', '.', '=', ' ', 'é'])
        if (sealed[at] !== other)
          expect(unseal(ring, sealed.slice(0, at) + other + sealed.slice(at + 1))).toBeUndefined()
    for (let end = 0; end < sealed.length; end++) expect(unseal(ring, sealed.slice(0, end))).toBeUndefined()
    for (const tail of ['A', '=', ' ', '\n', '.']) expect(unseal(ring, sealed + tail)).toBeUndefined()
    expect(unseal(ring, ` ${sealed}`)).toBeUndefined()
    expect(unseal(same, sealed.replace('k1', 'k2'))).toBeUndefined()
  })

  it('opens no text at all that it did not seal, and never throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.base64String().map(text => `k1.${text}`),
        ),
        text => unseal(ring, text) === undefined,
      ),
    )
  })

  it('opens with an older key, and no more once that is gone', () => {
    const sealed = seal(ring, 'old')
    const second = key('k2')
    expect(unseal({ current: second, older: [first] }, sealed)?.toString()).toBe('old')
    expect(unseal({ current: second }, sealed)).toBeUndefined()
    expect(unseal({ current: key('k1') }, sealed)).toBeUndefined()
  })
})

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
