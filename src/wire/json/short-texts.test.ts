import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readShortText } from './short-texts.ts'

const read = (text: string): string => {
  const bytes = Buffer.from(`"${text}"`)
  return readShortText(bytes, 1, bytes.length - 1)
}

describe('a short text', () => {
  it('is the same whether it was read before or not', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 45 }),
      fc.constantFrom(
        '',
        'echo',
        'tools/call',
        'tools/list',
        'é',
        '\u0000',
        'x'.repeat(40),
        'x'.repeat(41),
        '\\\\u0041',
      ),
      fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 6 }), // many with the same hash
    )
    fc.assert(
      fc.property(fc.array(texts, { maxLength: 40 }), list => {
        for (const text of [...list, ...list]) expect(read(text)).toBe(text)
      }),
    )
  })
})
