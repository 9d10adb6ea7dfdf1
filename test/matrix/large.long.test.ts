import { test } from 'vitest'
import { clientOf, inCell, serverOf } from './cells.ts'
import { MIB, readsWhole } from './large.ts'

test.each([
  ['2026-07-28', 'stateless', '2026-07-28', 'stateless'],
  ['2025-11-25', 'streamable', '2026-07-28', 'stateless'],
  ['2025-11-25', 'streamable', '2025-11-25', 'streamable'],
  ['2025-06-18', 'http-sse', '2024-11-05', 'http-sse'],
] as const)('F14: 40 MiB arrive whole (%s %s → %s %s)', async (client, front, server, dialect) => {
  await inCell(clientOf(client, front), serverOf(server, dialect), {}, readsWhole(40 * MIB))
})
