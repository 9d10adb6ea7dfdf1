import { expect, test } from 'vitest'
import type { TimelineItem } from '../../../protocol/memory-views.ts'
import { timelineRows } from './timeline-rows.ts'

const NOW = new Date('2026-05-05T12:00:00').getTime()
const HOUR = 3_600_000

const item = (id: string, at: number): TimelineItem =>
  ({ kind: 'episode', at, episode: { id } }) as unknown as TimelineItem

test('each day has a heading with its number of items', () => {
  const rows = timelineRows(
    [item('a', NOW), item('b', NOW - HOUR), item('c', NOW - 24 * HOUR), item('d', NOW - 96 * HOUR)],
    true,
    NOW,
  )
  expect(rows.map(row => (row.kind === 'day' ? `${row.title} ${row.count}` : row.key))).toEqual([
    'Today 2',
    'episode a',
    'episode b',
    'Yesterday 1',
    'episode c',
    '2026-05-01 1',
    'episode d',
    'more',
  ])
  expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length)
})

test('nothing has no rows', () => {
  expect(timelineRows([], false, NOW)).toEqual([])
})
