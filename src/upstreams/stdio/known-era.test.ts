import { expect, test } from 'vitest'
import { Json } from '../../wire/json/json.ts'
import { KnownEra, KnownEras } from './known-era.ts'
import type { OpenedProcess } from './open-process.ts'

const DAY = 24 * 60 * 60_000
const legacy = {
  era: 'legacy',
  pipe: {} as OpenedProcess['pipe'],
  handshake: { revision: '2025-11-25', result: Json.empty },
} as const

test('the era of a server with a configured era does not decide for a server with the same command and none', () => {
  const eras = new KnownEras()
  new KnownEra(eras, 'program x', 'legacy', DAY).detected(legacy)
  expect(new KnownEra(eras, 'program x', 'auto', DAY).era).toBeUndefined()
  new KnownEra(eras, 'program x', 'auto', DAY).detected(legacy)
  expect(new KnownEra(eras, 'program x', 'auto', DAY).era).toBe('legacy')
})
