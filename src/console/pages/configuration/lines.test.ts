import { describe, expect, it } from 'vitest'
import { diffHunks, diffLines, mergeTexts } from './lines.ts'

const text = (...lines: string[]) => lines.join('\n')

describe('diffLines', () => {
  it('marks lines that were added and removed, with their numbers', () => {
    expect(diffLines(text('a', 'b', 'c'), text('a', 'x', 'c', 'd'))).toEqual([
      { kind: 'same', text: 'a', before: 1, after: 1 },
      { kind: 'removed', text: 'b', before: 2 },
      { kind: 'added', text: 'x', after: 2 },
      { kind: 'same', text: 'c', before: 3, after: 3 },
      { kind: 'added', text: 'd', after: 4 },
    ])
  })

  it('finds lines that stay in the middle', () => {
    const shown = diffLines(text('1', 'a', 'b', 'c', '2'), text('x', 'a', 'b', 'c', 'y')).map(
      ({ kind, text }) => kind[0] + text,
    )
    expect(shown.filter(line => line.startsWith('s'))).toEqual(['sa', 'sb', 'sc'])
  })

  it('does not take lines for changed because of their ends', () => {
    expect(diffLines('a\r\nb', 'a\nb').every(({ kind }) => kind === 'same')).toBe(true)
  })

  it('stays quick for texts that have nothing in common', () => {
    const many = (prefix: string) => Array.from({ length: 5000 }, (_, at) => `${prefix}${at}`).join('\n')
    expect(diffLines(many('a'), many('b'))).toHaveLength(10_000)
  })
})

it('diffHunks leaves out what is far from a change', () => {
  const before = Array.from({ length: 30 }, (_, at) => `line ${at}`)
  const after = before.map((line, at) => (at === 15 ? 'changed' : line))
  const hunks = diffHunks(diffLines(before.join('\n'), after.join('\n')), 2)
  expect(hunks.map(line => line?.text)).toEqual([
    'line 13',
    'line 14',
    'line 15',
    'changed',
    'line 16',
    'line 17',
    undefined,
  ])
})

describe('mergeTexts', () => {
  const BASE = text('1', '2', '3', '4', '5', '6', '7')

  it('takes both changes, and the line ends of the file', () => {
    const mine = text('1', 'two', '3', '4', '5', '6', '7')
    const theirs = text('1', '2', '3', '4', '5', 'six', '6b', '7', '8').replaceAll('\n', '\r\n')
    expect(mergeTexts(BASE, mine, theirs)).toBe(
      text('1', 'two', '3', '4', '5', 'six', '6b', '7', '8').replaceAll('\n', '\r\n'),
    )
  })

  it.each([
    ['the same line', text('1', 'a', '3', '4', '5', '6', '7'), text('1', 'b', '3', '4', '5', '6', '7')],
    ['lines that touch', text('1', 'a', '3', '4', '5', '6', '7'), text('1', '2', 'b', '4', '5', '6', '7')],
    ['the same place', text('0', BASE), text('x', BASE)],
  ])('leaves changes of %s to the user', (_, mine, theirs) => {
    expect(mergeTexts(BASE, mine, theirs)).toBeUndefined()
  })

  it('has nothing to do where both made the same change', () => {
    expect(mergeTexts(BASE, text('0', BASE), text('0', BASE))).toBe(text('0', BASE))
  })
})
