import { createHmac, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { KeyedHash } from './keyed-hash.ts'

const reference = (key: Buffer, text: string): string => createHmac('sha256', key).update(text).digest('base64url')

test.each([0, 1, 32, 64])('equals the HMAC of Node.js with a key of %i bytes', length => {
  const key = randomBytes(length)
  const keyed = new KeyedHash(key)
  const texts = ['', 'a', 'stream:p1_7r31', 'é'.repeat(170), '𝄞'.repeat(85), 'x'.repeat(171), 'y'.repeat(100_000), 'a']
  for (const text of texts) expect(keyed.digest(text)).toBe(reference(key, text))
})

test('rejects a key that is longer than a block', () => {
  expect(() => new KeyedHash(randomBytes(65))).toThrow(/65 bytes/)
})
