import { describe, expect, test } from 'vitest'
import type { RecordingSummary } from '../../../admin/api/recorder.ts'
import { filterQuery, matchesFilter, readFilter } from './filters.ts'
import { joinRows, mergeRows } from './merge-rows.ts'
import { parkedRecording } from './recording.fixture.ts'

const row = (order: number, more: Partial<RecordingSummary> = {}): RecordingSummary => {
  const { all: _all, dropped: _dropped, ...summary } = parkedRecording(String(order), order)
  return { ...summary, ...more }
}
const ids = (rows: readonly RecordingSummary[]): string => rows.map(({ id }) => id).join(' ')

describe('mergeRows', () => {
  test('changes rows in place and gives new ones newest first', () => {
    const { rows, added } = mergeRows([row(2, { outcome: 'running' }), row(1)], [row(3), row(2), row(4)], {})
    expect(ids(rows)).toBe('2 1')
    expect(rows[0]?.outcome).toBe('input_required')
    expect(ids(added)).toBe('4 3')
  })

  test('keeps the same array if no row has changed', () => {
    const before = [row(1)]
    expect(mergeRows(before, [row(2)], {}).rows).toBe(before)
  })

  test('the last of several changes counts', () => {
    const { added } = mergeRows([], [row(1, { outcome: 'running' }), row(1, { outcome: 'ok' })], {})
    expect(added.map(({ outcome }) => outcome)).toEqual(['ok'])
  })

  test('a row that no longer matches the filter is removed', () => {
    const running = row(1, { outcome: 'running' })
    expect(mergeRows([running], [row(1, { outcome: 'ok' })], { outcome: 'running' }).rows).toEqual([])
  })
})

describe('joinRows', () => {
  test('has no duplicates, stays sorted and bounded', () => {
    expect(ids(joinRows([row(5), row(4)], [row(4), row(3), row(2)], 3))).toBe('5 4 3')
    expect(ids(joinRows([row(2)], [row(3)], 10))).toBe('3 2')
  })
})

describe('filters', () => {
  test('are the same in the address', () => {
    const filter = { search: 'a&b=c', method: 'tools/call', translated: 'yes' }
    expect(readFilter(new URLSearchParams(filterQuery(filter)))).toEqual(filter)
    expect(readFilter(new URLSearchParams('method=&other=1'))).toEqual({})
  })

  test.each([
    [{ method: 'tools/call' }, true],
    [{ method: 'tools/list' }, false],
    [{ server: 'notes' }, true],
    [{ server: 'other' }, false],
    [{ workspace: 'default', outcome: 'input_required', translated: 'yes' }, true],
    [{ outcome: 'ok' }, false],
  ])('%j matches: %s', (filter, isMatch) => {
    expect(matchesFilter(row(1), filter)).toBe(isMatch)
    expect(matchesFilter(row(1, { isTranslated: false }), { translated: 'yes' })).toBe(false)
  })
})
