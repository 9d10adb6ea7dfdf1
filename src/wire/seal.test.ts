import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type SealKey, seal, unseal } from './seal.ts'

const newKey = (id: string): SealKey => ({ id, key: randomBytes(32) })
const key = newKey('k1')

describe('seal', () => {
  it('opens what it sealed', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 100 }), fc.string({ unit: 'grapheme' }), (bytes, text) => {
        expect(unseal(key, seal(key, bytes))).toEqual(Buffer.from(bytes))
        expect(unseal(key, seal(key, text))?.toString()).toBe(text)
      }),
    )
  })

  it('names the key and is safe in a URL and in a header', () => {
    expect(seal(key, 'x'.repeat(50))).toMatch(/^k1\.[A-Za-z0-9_-]+$/)
  })

  it('never writes the same thing twice', () => {
    expect(new Set(Array.from({ length: 100 }, () => seal(key, 'same'))).size).toBe(100)
  })

  it('opens nothing that differs in a single character, is cut, prolonged, or moved to another key', () => {
    const sealed = seal(key, 'some state')
    const same: SealKey = { id: 'k2', key: key.key }
    for (let at = 0; at < sealed.length; at++)
      for (const other of ['A', 'B', '_', '.', '=', ' ', 'é'])
        if (sealed[at] !== other)
          expect(unseal(key, sealed.slice(0, at) + other + sealed.slice(at + 1))).toBeUndefined()
    for (let end = 0; end < sealed.length; end++) expect(unseal(key, sealed.slice(0, end))).toBeUndefined()
    for (const tail of ['A', '=', ' ', '\n', '.']) expect(unseal(key, sealed + tail)).toBeUndefined()
    expect(unseal(key, ` ${sealed}`)).toBeUndefined()
    expect(unseal(same, sealed.replace('k1', 'k2'))).toBeUndefined()
  })

  it('opens no text at all that it did not seal, and never throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.base64String().map(text => `k1.${text}`),
        ),
        text => unseal(key, text) === undefined,
      ),
    )
  })

  it('opens nothing that another key sealed, even one of the same id', () => {
    expect(unseal(newKey('k1'), seal(key, 'x'))).toBeUndefined()
    expect(unseal(newKey('k2'), seal(key, 'x'))).toBeUndefined()
  })
})
