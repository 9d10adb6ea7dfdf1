import { expect, test } from 'vitest'
import { Json } from '../../wire/json/json.ts'
import { createVerdict } from './known-era.ts'
import type { Opened } from './open-process.ts'

const DAY = 24 * 60 * 60_000
const legacy = {
  era: 'legacy',
  pipe: {} as Opened['pipe'],
  greeting: { revision: '2025-11-25', result: Json.empty },
} as const

test('what an entry with an era of its own meets does not decide for an entry of the same command without one', () => {
  createVerdict('program x', 'legacy', DAY).found(legacy)
  expect(createVerdict('program x', 'auto', DAY).era).toBeUndefined()
  createVerdict('program x', 'auto', DAY).found(legacy)
  expect(createVerdict('program x', 'auto', DAY).era).toBe('legacy')
})
