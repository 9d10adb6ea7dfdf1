import { expect, test } from 'vitest'
import { mergeActivities } from './merge-activity.ts'

test('calls of two processes are summed, and their durations weighted', () => {
  const merged = mergeActivities([
    {
      calls: 4,
      errors: 1,
      lastError: { at: 5, message: 'old' },
      history: { calls: [1, 3], errors: [0, 1], ms: [10, 20] },
    },
    {
      calls: 1,
      errors: 1,
      lastError: { at: 9, message: 'new' },
      history: { calls: [0, 1], errors: [0, 1], ms: [null, 40] },
    },
  ])
  expect(merged).toEqual({
    calls: 5,
    errors: 2,
    lastError: { at: 9, message: 'new' },
    history: { calls: [1, 4], errors: [0, 2], ms: [10, 25] },
  })
})

test('a process without late calls changes nothing of the history', () => {
  const history = { calls: [1], errors: [0], ms: [10] }
  expect(
    mergeActivities([
      { calls: 1, errors: 0 },
      { calls: 1, errors: 0, history },
    ]),
  ).toMatchObject({ calls: 2, history })
  expect(mergeActivities([])).toBeUndefined()
})
