import fc from 'fast-check'
import { expect, test } from 'vitest'
import { passagesOf } from './passages.ts'

test('a message is split into turns, with their continuation lines', () => {
  const content = 'Ann: Hello there\nBob (support): Hi!\nI will look.\n\n[10:02] Ann: Thanks: really'
  expect(passagesOf({ content, source: 'message' })).toEqual([
    { kind: 'turn', actor: 'Ann', text: 'Hello there' },
    { kind: 'turn', actor: 'Bob', text: 'Hi!\nI will look.' },
    { kind: 'turn', actor: 'Ann', text: 'Thanks: really' },
  ])
})

test('a message without speakers is read as text', () => {
  expect(passagesOf({ content: 'no speaker here', source: 'message' })).toEqual([
    { kind: 'passage', text: 'no speaker here' },
  ])
  expect(passagesOf({ content: 'see https://example.com', source: 'message' })).toHaveLength(1)
})

test('a text is split into paragraphs; a heading belongs to the next one', () => {
  const long = 'This paragraph says something about the storage layer and is long enough to stand on its own.'
  expect(passagesOf({ content: `# Storage\n\n${long}\n\n\n${long}`, source: 'text' })).toEqual([
    { kind: 'passage', text: `# Storage\n${long}` },
    { kind: 'passage', text: long },
  ])
})

test('JSON has a passage for each leaf, with its path in words and the name of its object', () => {
  const content = JSON.stringify({ name: 'Acme', homeTown: { city: 'Ulm' }, tags: ['a', 'b'], nothing: null, size: 3 })
  expect(passagesOf({ content, source: 'json' }).map(({ text }) => text)).toEqual([
    'Acme name: Acme',
    'Acme home Town city: Ulm',
    'Acme tags: a, b',
    'Acme size: 3',
  ])
})

test('invalid JSON is read as text', () => {
  expect(passagesOf({ content: '{oops', source: 'json' })).toEqual([{ kind: 'passage', text: '{oops' }])
})

test.each(['', '   \n\n ', '{}', '[]', 'null'])('empty content has no passages: %j', content => {
  expect(passagesOf({ content, source: content.startsWith(' ') || content === '' ? 'text' : 'json' })).toEqual([])
})

test('too many turns are joined without losing words', () => {
  const content = Array.from({ length: 25_000 }, (_, index) => `a: w${index}`).join('\n')
  const passages = passagesOf({ content, source: 'message' })
  expect(passages.length).toBeLessThanOrEqual(10_000)
  expect(passages.at(-1)?.text).toContain('w24999')
})

test('ten megabytes without a space are cut', () => {
  const passages = passagesOf({ content: 'x'.repeat(10 * 1024 * 1024), source: 'text' })
  expect(passages.length).toBeLessThanOrEqual(10_000)
  expect(passages.reduce((sum, { text }) => sum + text.length, 0)).toBe(10 * 1024 * 1024)
})

test('deep JSON does not overflow', () => {
  const content = `${'['.repeat(5_000)}1${']'.repeat(5_000)}`
  expect(passagesOf({ content, source: 'json' }).length).toBeGreaterThanOrEqual(1)
})

test('no word of a text is lost', () => {
  const word = fc.constantFrom('alpha', 'Bob:', 'x. y', '\n\n', '\n', 'a'.repeat(1_500), '#')
  fc.assert(
    fc.property(fc.array(word, { maxLength: 40 }), fc.constantFrom('text', 'fact_triple'), (words, source) => {
      const content = words.join(' ')
      const kept = passagesOf({ content, source }).map(({ text }) => text)
      expect(kept.join('').replace(/\s/g, '')).toBe(content.replace(/\s/g, ''))
    }),
  )
})
