import { expect, test } from 'vitest'
import type { RecordingSummary } from '../../../admin/api/recorder.ts'
import { endingText, valuesOf } from './filters.ts'

test('an end is a sentence, and an error is as it was sent', () => {
  expect(endingText({ outcome: 'cancelled', error: 'gone' })).toBe('The client has disconnected.')
  expect(endingText({ outcome: 'error', error: 'gone' })).toBe('gone')
  expect(endingText({ outcome: 'ok' })).toBeUndefined()
})

test('values that were there before stay choices, up to a bound', () => {
  const rows = [{ method: 'tools/list' }] as unknown as readonly RecordingSummary[]
  const read = ({ method }: RecordingSummary) => [method]
  expect(valuesOf(rows, read, { chosen: 'ping', before: ['tools/call'] })).toEqual(['ping', 'tools/call', 'tools/list'])
  const before = Array.from({ length: 9000 }, (_, at) => `method${at}`)
  expect(valuesOf(rows, read, { chosen: undefined, before })).toHaveLength(500)
})
