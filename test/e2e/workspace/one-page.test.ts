import { describe, expect, test } from 'vitest'
import { isModern } from '../../../src/protocol/revisions.ts'
import { serverOf } from '../../matrix/cells.ts'
import { spelt } from '../../matrix/client.ts'
import type { MatrixServer } from '../../matrix/server.ts'
import { KINDS } from './every-kind.ts'
import { amongMany, namesIn } from './many.ts'

const tool = (name: string) => ({ name, inputSchema: { type: 'object' }, 'x-n': spelt('1.0') })

/** Answers a list in pages; a cursor is the number of the next one. */
const paging = (
  server: MatrixServer,
  pages: readonly object[][],
  more: (page: number) => object = () => ({}),
): void => {
  server.methods.set('tools/list', ({ cursor }) => {
    const page = Number(cursor ?? 0)
    const next = page + 1 < pages.length ? { nextCursor: String(page + 1) } : {}
    return { tools: pages[page] ?? [], ...next, ...more(page) }
  })
}

describe.each(['2026-07-28', '2025-06-18'] as const)('the only server of a workspace, of %s,', revision => {
  const only = { only: serverOf(revision).start }

  test.each(KINDS)('shows all its pages in one to a client that never pages, as written: $name', kind =>
    amongMany(only, {}, async ({ servers, client: open }) => {
      const server = servers.only as MatrixServer
      paging(server, [[tool('a'), tool('b')], [], [tool('c')]], page => ({ [`x-${page}`]: page, _meta: { page } }))
      const client = await open(kind)
      const { result } = await client.call('tools/list', {}, { meta: { progressToken: 'p' } })
      expect(namesIn(result, 'tools')).toEqual(['a', 'b', 'c'])
      expect(result).toMatchObject({ 'x-0': 0, 'x-1': 1, 'x-2': 2, _meta: { page: 0 } })
      expect(result).not.toHaveProperty('nextCursor')
      expect(client.texts.at(-1)?.match(/"x-n":1\.0/g)).toHaveLength(3)
      // A known list may be answered before the server is.
      const tokens = () =>
        server
          .of('tools/list')
          .map(({ message }) => Boolean((message.params?._meta as { progressToken?: unknown })?.progressToken))
          .slice(-3)
      await expect.poll(tokens).toEqual([true, false, false])
    }),
  )

  test('promises the shortest time and the narrowest scope of all pages', () =>
    amongMany(only, {}, async ({ servers, client: open }) => {
      const server = servers.only as MatrixServer
      const hints = [
        { ttlMs: 5000, cacheScope: 'public' },
        { ttlMs: 100, cacheScope: 'private' },
      ]
      paging(server, [[tool('a')], [tool('b')]], page => (isModern(revision) ? (hints[page] as object) : {}))
      const client = await open(KINDS[0] as (typeof KINDS)[number])
      const list = async () => (await client.call('tools/list')).result
      expect(namesIn(await list(), 'tools')).toEqual(['a', 'b'])
      if (isModern(revision)) await expect.poll(list).toMatchObject({ ttlMs: 100, cacheScope: 'private' })
    }))

  test('gives a cursor of its own where the list is longer than a page, and takes it back', () =>
    amongMany(only, {}, async ({ servers, client: open }) => {
      const server = servers.only as MatrixServer
      const pages = Array.from({ length: 13 }, (_, page) =>
        Array.from({ length: 100 }, (_, i) => tool(`t${page}-${i}`)),
      )
      paging(server, pages)
      const client = await open(KINDS[0] as (typeof KINDS)[number])
      const first = await client.call('tools/list')
      expect([namesIn(first.result, 'tools').length, first.result?.nextCursor]).toEqual([1000, '10'])
      const second = await client.call('tools/list', { cursor: '10' })
      expect([namesIn(second.result, 'tools').length, second.result?.nextCursor]).toEqual([100, '11'])
    }))

  test('is asked for 64 pages at most, however many it says it has', () =>
    amongMany(only, {}, async ({ servers, client: open }) => {
      const server = servers.only as MatrixServer
      server.methods.set('tools/list', ({ cursor }) => ({ tools: [], nextCursor: String(Number(cursor ?? 0) + 1) }))
      const client = await open(KINDS[0] as (typeof KINDS)[number])
      const before = server.of('tools/list').length
      expect((await client.call('tools/list')).result).toMatchObject({ tools: [], nextCursor: '64' })
      expect(server.of('tools/list').length - before).toBe(64)
    }))

  test('is cut off when its cursors repeat, and degrades the server until they do not', () =>
    amongMany(only, {}, async ({ servers, client: open, gateway }) => {
      const server = servers.only as MatrixServer
      server.methods.set('tools/list', () => ({ tools: [tool('a')], nextCursor: 'again' }))
      const client = await open(KINDS[0] as (typeof KINDS)[number])
      const { result } = await client.call('tools/list')
      expect([namesIn(result, 'tools'), result?.nextCursor]).toEqual([['a'], undefined])
      const { status } = await gateway()
      const state = () => status()[0]?.servers[0]
      expect(state()).toMatchObject({ state: 'degraded', reason: expect.stringContaining('cursors repeat') })
      paging(server, [[tool('a')]])
      await client.call('tools/list')
      expect(state()).toMatchObject({ state: 'ready' })
    }))

  test('gives what it listed before a page failed, and the cursor of that page', () =>
    amongMany(only, {}, async ({ servers, client: open }) => {
      const server = servers.only as MatrixServer
      server.methods.set('tools/list', ({ cursor }) => {
        if (cursor === '2') throw new Error('disk')
        return { tools: [tool(`t${cursor ?? 0}`)], nextCursor: String(Number(cursor ?? 0) + 1) }
      })
      const client = await open(KINDS[0] as (typeof KINDS)[number])
      const { result } = await client.call('tools/list')
      expect([namesIn(result, 'tools'), result?.nextCursor]).toEqual([['t0', 't1'], '2'])
      expect((await client.call('tools/list', { cursor: '2' })).error).toBeDefined()
    }))
})
