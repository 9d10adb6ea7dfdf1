import { expect, test } from 'vitest'
import { excerptOf, highlightWords, repeatsText } from './highlight.ts'

const hits = (text: string, query: string) =>
  highlightWords(text, query)
    .filter(({ isHit }) => isHit)
    .map(piece => piece.text)

test('words of the query are marked in every form, small ones are not', () => {
  expect(hits('Ann parked the car; parking is hard for Anna.', 'Where did Ann park?')).toEqual([
    'Ann',
    'parked',
    'parking',
    'Anna',
  ])
  expect(hits('the was and', 'the was and')).toEqual([])
  expect(hits('<mark>x</mark> München', 'münchen mark')).toEqual(['mark', 'mark', 'München'])
})

test('the pieces are the text', () => {
  for (const query of ['', 'ann', '.*', '"; drop'])
    expect(
      highlightWords('Ann met “Bob” (twice).', query)
        .map(({ text }) => text)
        .join(''),
    ).toBe('Ann met “Bob” (twice).')
})

test('a long text is cut around the first hit', () => {
  const text = `${'word '.repeat(200)}needle ${'word '.repeat(200)}`
  const cut = excerptOf(text, 'needle', 200)
  expect(cut).toContain('needle')
  expect(cut.length).toBeLessThanOrEqual(202)
  expect(excerptOf('short', 'needle', 200)).toBe('short')
  expect(excerptOf(text, 'nothing', 100)).toBe(`${text.slice(0, 100)}…`)
})

test('a title that repeats the text is recognized', () => {
  expect(repeatsText('Ann met…', 'Ann met Bob in Paris.')).toBe(true)
  expect(repeatsText('The trip', 'Ann met Bob in Paris.')).toBe(false)
})
