import { describe, expect, test } from 'vitest'
import { ExactNumber } from '../../../exact-json.ts'
import { cellText, compareCells, findTable, isNumberColumn } from './table-rows.ts'

describe('a table is found', () => {
  const rows = [
    { a: 1, b: 'x' },
    { a: 2, c: true },
  ]

  test('in a list of objects, or in the only list of an object', () => {
    expect(findTable(rows)?.columns).toEqual(['a', 'b', 'c'])
    expect(findTable({ total: 2, rows })?.rows.map(({ cells }) => cells)).toEqual(rows)
  })

  test.each([[[1, 2]], [[{ a: 1 }, 2]], [[{ a: 1 }]], [[{}, {}]], ['text'], [null], [{ x: rows, y: rows }]])(
    '%j has none',
    value => {
      expect(findTable(value)).toBeUndefined()
    },
  )

  test('columns of numbers are recognised', () => {
    const table = findTable([{ a: 1, b: 1 }, { a: new ExactNumber('12345678901234567890'), b: 'x' }, { b: 2 }])
    expect(table && isNumberColumn(table, 'a')).toBe(true)
    expect(table && isNumberColumn(table, 'b')).toBe(false)
  })
})

test('cells are compared by value and shown as text', () => {
  const sorted = [10, undefined, 9, new ExactNumber('12345678901234567890')].toSorted(compareCells)
  expect(sorted.map(cellText)).toEqual(['9', '10', '12345678901234567890', ''])
  expect(['b10', 'b9', 'a'].toSorted(compareCells)).toEqual(['a', 'b9', 'b10'])
  expect(cellText({ a: [1] })).toBe('{"a":[1]}')
})
