import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Keyring, type SealKey, seal, unseal } from './seal.ts'

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
