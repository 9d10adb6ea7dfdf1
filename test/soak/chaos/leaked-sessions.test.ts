import { expect, test } from 'vitest'
import { describeLeak, isCutByFault } from './leaked-sessions.ts'

const FAULTS = [{ beganAt: 10_000, endedAt: 12_000 }]

test.each([
  ['an answer that the gateway had not read', 9_500, undefined, 9_500, true],
  ['a handshake that a busy server answered after the kill', 11_000, undefined, 11_000, true],
  ['a session that the gateway had just got', 9_700, 9_900, 9_900, true],
  ['a handshake long before', 8_000, undefined, 8_000, false],
  ['a handshake of the next gateway', 12_500, undefined, 12_500, false],
  ['a session that the gateway had had for long', 5_000, 5_010, 9_990, false],
  ['a session that the next gateway has used', 9_800, 9_900, 13_000, false],
])('%s', (_, openedAt, knownAt, usedAt, isCut) => {
  expect(isCutByFault({ id: 's', openedAt, knownAt, usedAt, streams: 0 }, FAULTS)).toBe(isCut)
})

test('a leak is described by the faults before', () => {
  const session = { id: 's', openedAt: 10_500, knownAt: 12_600, usedAt: 13_000, streams: 0 }
  expect(describeLeak(session, FAULTS)).toBe(
    'session leaked at a server: s, opened 0.50 s after a fault, first used 2.60 s after a fault, last used 3.00 s after a fault',
  )
  expect(describeLeak({ ...session, openedAt: 1, knownAt: undefined }, FAULTS)).toContain(
    'before the first fault, never used',
  )
})
