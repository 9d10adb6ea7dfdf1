import { describe, expect, test } from 'vitest'
import { NEVER } from '../../protocol/cancellation.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import type { RecordingSummary } from '../../protocol/recording.ts'
import { Json } from '../../wire/json/json.ts'
import { FlightRecorder } from './flight-recorder.ts'
import { openRecorder } from './recorder-access.ts'
import type { RecordingPage } from './recording-query.ts'
import { createRedactor } from './redact.ts'
import { joinPages, shareRecordings } from './shared-recordings.ts'

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

test('pages go on behind an exchange of a burst that failed late', async () => {
  let isBurst = false
  const flight = new FlightRecorder({ maxBytes: 1024 * 1024, maxMessageBytes: 1024 }, true, { take: () => !isBurst })
  const access = openRecorder(flight, { redactor: createRedactor({ names: [], secrets: () => [] }) })
  const { answer } = shareRecordings(flight, access, 1)
  const call = (): Exchange => ({
    kind: 'request',
    method: 'tools/list',
    params: Json.empty,
    caller: {
      workspace: 'default',
      principal: undefined,
      revision: '2026-07-28',
      capabilities: Json.empty,
      headers: new Map(),
    },
    signal: NEVER,
    sink: () => {},
  })
  for (let at = 0; at < 30; at++) flight.follow(call(), 'stateless')?.ended({ kind: 'result', result: Json.empty }, 1)
  isBurst = true
  const late = { kind: 'failure', error: { code: -32603, message: 'No answer' } } as const
  flight.follow(call(), 'stateless')?.ended(late, 5000)

  const seen: number[] = []
  let before: number | undefined
  for (let page = 0; page < 10; page++) {
    const filter = before === undefined ? {} : { before }
    const found = (await answer({ kind: 'query', filter, limit: 10, searchesTexts: true })) as RecordingPage
    seen.push(...found.recordings.map(({ order }) => order))
    before = found.next
    if (before === undefined) break
  }
  expect(seen).toHaveLength(31)
  expect(new Set(seen).size).toBe(31)
  expect(seen).toEqual(seen.toSorted((a, b) => b - a))
})
