import { expect, test } from 'vitest'
import { newUuid } from './ids.ts'

test('newUuid makes unique version 7 uuids that start with the time', () => {
  const now = Date.UTC(2026, 0, 1)
  const made = Array.from({ length: 500 }, () => newUuid(now))
  for (const uuid of made) expect(uuid).toMatch(/^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  expect(new Set(made).size).toBe(500)
  expect(Number.parseInt(newUuid(now).replaceAll('-', '').slice(0, 12), 16)).toBe(now)
  expect(newUuid(now + 1) > newUuid(now)).toBe(true)
})
