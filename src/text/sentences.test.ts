import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sentencesOf } from './sentences.ts'

const texts = (text: string) => sentencesOf(text).map(sentence => sentence.text)

test.each([
  ['One. Two! Three?', ['One.', 'Two!', 'Three?']],
  ['Dr. Chen met J. Doe at 3.15 p.m. today. They left.', ['Dr. Chen met J. Doe at 3.15 p.m. today.', 'They left.']],
  ['Uses e.g. SQLite. Fast.', ['Uses e.g. SQLite.', 'Fast.']],
  ['He said “Stop!” Then he left.', ['He said “Stop!”', 'Then he left.']],
  ['first line\nsecond line', ['first line', 'second line']],
  ['东京很大。我喜欢它！', ['东京很大。', '我喜欢它！']],
  ['Wait... what', ['Wait... what']],
  ['see docs.example.com/a.b for v1.2.3', ['see docs.example.com/a.b for v1.2.3']],
  ['  \n ', []],
])('%j', (text, expected) => {
  expect(texts(text)).toEqual(expected)
})

test('an overlong sentence is cut at spaces', () => {
  const pieces = sentencesOf('word '.repeat(1_000))
  expect(pieces.length).toBeGreaterThan(5)
  expect(Math.max(...pieces.map(piece => piece.text.length))).toBeLessThanOrEqual(600)
})

test('every sentence is at its offset, and no letter is lost', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', 'B', '.', '!', ' ', '\n', '。', '"'), maxLength: 200 }),
      text => {
        const found = sentencesOf(text)
        for (const { text: sentence, start } of found) expect(text.slice(start, start + sentence.length)).toBe(sentence)
        expect(found.map(({ text: sentence }) => sentence.replace(/\s/g, '')).join('')).toBe(text.replace(/\s/g, ''))
      },
    ),
  )
})
