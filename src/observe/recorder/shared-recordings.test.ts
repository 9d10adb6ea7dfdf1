import { describe, expect, test } from 'vitest'
import type { RecordingSummary } from '../../protocol/recording.ts'
import { joinPages } from './shared-recordings.ts'

const rows = (...orders: readonly number[]) => orders.map(order => ({ order }) as RecordingSummary)
const ordersOf = ({ recordings }: { recordings: readonly RecordingSummary[] }) => recordings.map(({ order }) => order)

describe('pages of several processes', () => {
  test('are one, newest first', () => {
    const page = joinPages(
      [
        { recordings: rows(9, 4), isPartial: false },
        { recordings: rows(7, 5), isPartial: false },
      ],
      10,
    )
    expect([ordersOf(page), page.next, page.isPartial]).toEqual([[9, 7, 5, 4], undefined, false])
  })

  test('end where one process has more than fits, so that nothing is skipped', () => {
    const page = joinPages(
      [
        { recordings: rows(9, 8), next: 7, isPartial: false },
        { recordings: rows(6, 2), isPartial: false },
      ],
      2,
    )
    expect([ordersOf(page), page.next]).toEqual([[9, 8], 7])
    const full = joinPages(
      [
        { recordings: rows(9, 5), next: 4, isPartial: false },
        { recordings: rows(8, 7), next: 7, isPartial: false },
      ],
      2,
    )
    expect([ordersOf(full), full.next]).toEqual([[9, 8], 8])
  })

  test('keep what is older than the place where a search has stopped for the next page', () => {
    const page = joinPages(
      [
        { recordings: rows(), next: 6, isPartial: true },
        { recordings: rows(8, 3), isPartial: false },
      ],
      10,
    )
    expect([ordersOf(page), page.next, page.isPartial]).toEqual([[8], 6, true])
  })

  test('may all be empty', () => {
    expect(joinPages([{ recordings: [], isPartial: false }], 10)).toEqual({ recordings: [], isPartial: false })
  })
})
