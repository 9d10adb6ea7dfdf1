import { createHash, randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { type Cell, clientOf, everyCell, inCell, serverOf } from './cells.ts'

const MIB = 2 ** 20
const hashOf = (text: unknown): string => createHash('sha256').update(String(text)).digest('hex')

/** A resource of that size is the same on both wires. */
const readsWhole = (size: number) => {
  const blob = randomBytes((size / 4) * 3).toString('base64')
  const hash = hashOf(blob)
  return async ({ client, server }: Cell): Promise<void> => {
    const uri = 'test://large'
    server.methods.set('resources/read', params => ({ contents: [{ uri: params.uri, mimeType: 'x/y', blob }] }))
    const { result, error } = await client.call('resources/read', { uri })
    expect(error).toBeUndefined()
    const [content] = (result?.contents ?? []) as { uri: string; mimeType: string; blob: string }[]
    expect([content?.uri, content?.mimeType, content?.blob.length]).toEqual([uri, 'x/y', size])
    expect(hashOf(content?.blob)).toBe(hash)
    expect(server.of('resources/read').map(({ message }) => message.params?.uri)).toEqual([uri])
    expect((await client.call('resources/list')).result?.resources).toHaveLength(1) // and the way is free again
  }
}

// 81 times 40 MiB would take minutes: every cell carries 1 MiB, and one cell of each pair of eras and of each dialect
// all of it, ten times what is kept of a stream. How much memory that takes is measured by test/soak.
everyCell('F14: a large resource arrives whole through every pair', readsWhole(MIB))

test.each([
  ['2026-07-28', '2026-07-28'],
  ['2026-07-28', '2025-11-25'],
  ['2025-11-25', '2026-07-28'],
  ['2025-11-25', '2025-11-25'],
] as const)('F14: 40 MiB arrive whole (%s → %s)', async (client, server) => {
  await inCell(clientOf(client), serverOf(server), {}, readsWhole(40 * MIB))
})

test.each([
  ['2025-06-18', 'http-sse', '2024-11-05', 'http-sse'],
  ['2026-07-28', 'stdio', '2025-06-18', 'stdio'],
] as const)('F14: 40 MiB arrive whole (%s %s → %s %s)', async (client, front, server, dialect) => {
  await inCell(clientOf(client, front), serverOf(server, dialect), {}, readsWhole(40 * MIB))
})
