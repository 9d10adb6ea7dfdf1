import { test } from 'vitest'
import { clientOf, everyCell, inCell, serverOf } from './cells.ts'
import { MIB, readsWhole } from './large.ts'

// 81 times 40 MiB would take minutes: every cell carries 1 MiB, and one cell of each pair of eras and of each dialect all of
// it (two here, the others in large.long.test.ts), ten times what is kept of a stream. test/soak measures the memory.
everyCell('F14: a large resource arrives whole through every pair', readsWhole(MIB))

test.each([
  ['2026-07-28', 'stateless', '2025-11-25', 'streamable'],
  ['2026-07-28', 'stdio', '2025-06-18', 'stdio'],
] as const)('F14: 40 MiB arrive whole (%s %s → %s %s)', async (client, front, server, dialect) => {
  await inCell(clientOf(client, front), serverOf(server, dialect), {}, readsWhole(40 * MIB))
})
