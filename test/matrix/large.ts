import { createHash, randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import type { Cell } from './cells.ts'

export const MIB = 2 ** 20
const hashOf = (text: unknown): string => createHash('sha256').update(String(text)).digest('hex')

/** A resource of that size is the same on both wires. */
export const readsWhole = (size: number) => {
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
