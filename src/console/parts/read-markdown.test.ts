import { beforeAll, describe, expect, test } from 'vitest'
import { decodeReferences, readMarkdown } from './read-markdown.ts'

const SIZE = 100_000
const filled = (text: string): string => text.repeat(Math.floor(SIZE / text.length))

const PARAGRAPH = `${'Some *words* with a_name and **more** of `them`. '.repeat(20)}\n\n`
const LONG = PARAGRAPH.repeat(90)

const msOf = (work: () => unknown): number => {
  const startedAt = performance.now()
  work()
  return performance.now() - startedAt
}

let ordinaryMs = 0 // of a text about as long
beforeAll(() => {
  readMarkdown(LONG)
  ordinaryMs = msOf(() => readMarkdown(LONG))
})

describe('a text that would stop the page is not read', () => {
  test.each([
    ...['>', '> ', '>- ', '1. ', '- > ', '*a_', '_a', '**a', '***a', '~a', '[', '![', '[a](', '`a', '<a ', '|a', '\\'],
    ...['<!--', '- *a_', '&a', 'http://a.', '*_'],
  ])('%j', text => {
    const texts = [filled(text), text.repeat(20_000), `${text.repeat(6000)}x`]
    expect(msOf(() => texts.map(readMarkdown))).toBeLessThan(100 * ordinaryMs)
  })

  test.each([
    ['quotes', '>'.repeat(20_000)],
    ['lists by indentation', Array.from({ length: 200 }, (_, level) => `${' '.repeat(2 * level)}- a`).join('\n')],
    ['delimiters', filled('*a_')],
    ['a long text', 'a'.repeat(SIZE + 1)],
  ])('%s', (_what, text) => {
    expect(readMarkdown(text)).toBeUndefined()
  })
})

test('ordinary texts are read, also long ones', () => {
  expect(readMarkdown(LONG)?.length).toBeGreaterThan(100)
  expect(readMarkdown('> > quoted\n\n- a\n  - b\n    - c\n')?.map(({ type }) => type)).toEqual([
    'blockquote',
    'space',
    'list',
  ])
})

test.each([
  ['a rule', `a\n\n${'-'.repeat(80)}\n\nb`, ['paragraph', 'space', 'hr', 'space', 'paragraph']],
  ['stars', `a\n\n${'*'.repeat(80)}\n`, ['paragraph', 'space', 'hr']],
  ['an underlined heading', `A title\n${'-'.repeat(40)}\n\ntext\n`, ['heading', 'space', 'paragraph']],
  ['a bullet without text', '-\n- a\n', ['list']],
])('%s is read', (_what, text, expected) => {
  expect(readMarkdown(text)?.map(({ type }) => type)).toEqual(expected)
})

test('the ends of lines make no difference', () => {
  expect(readMarkdown(LONG.slice(0, 50_000).replaceAll('\n', '\r\n'))).toEqual(readMarkdown(LONG.slice(0, 50_000)))
  expect(readMarkdown(LONG.replaceAll('\n', '\r\n'))?.length).toBeGreaterThan(100)
})

test('only known references are replaced', () => {
  expect(decodeReferences('&lt;b&gt; &amp; &#65;&#x42; &nope; &#0;')).toBe('<b> & AB &nope; &#0;')
  expect(decodeReferences('&constructor; &toString; &__proto__;')).toBe('&constructor; &toString; &__proto__;')
})
