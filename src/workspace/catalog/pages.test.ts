import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Json } from '../../wire/json/json.ts'
import type { ListKind } from './list-kinds.ts'
import type { ShownItem, ShownList } from './merged-list.ts'
import { ListPages } from './pages.ts'

const lists = new ListPages([Buffer.alloc(32, 1)])
const listOf = (items: readonly Json[]): ShownList => ({
  items: items.map((item, i) => ({ exposed: `${i}`, definition: item })),
  missingServers: [],
  hash: 'e',
  bytes: 0,
})
const pagesOf = (kind: ListKind, list: ShownList): Json[] => {
  const pages: Json[] = []
  for (let page = lists.pageOf(kind, list, 0); page; page = lists.pageOf(kind, list, pages.length)) pages.push(page)
  return pages
}
const tool = (name: string, bytes: number) => Json.of({ name, description: 'x'.repeat(bytes) })

test('a list of a thousand items is one page, with no cursor', () => {
  const pages = pagesOf('tools', listOf(Array.from({ length: 1000 }, (_, i) => tool(`t${i}`, 10))))
  expect(pages).toHaveLength(1)
  expect(pages[0]?.has('nextCursor')).toBe(false)
})

test('an empty list is one empty page', () => {
  expect(pagesOf('tools', listOf([])).map(page => page.toValue())).toEqual([{ tools: [] }])
})

test('all pages together are the list in order, none is empty, and each cursor leads to the next', () => {
  const sizes = fc.array(fc.oneof(fc.constant(20), fc.integer({ min: 0, max: 900_000 })), { maxLength: 40 })
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 80 }), (large, times) => {
      const items = large.flatMap((bytes, i) => [
        tool(`large ${i}`, bytes),
        ...Array.from({ length: times }, (_, k) => tool(`small ${i} ${k}`, 1)),
      ])
      const pages = pagesOf('tools', listOf(items))
      const read = pages.map(page => page.get('tools')?.elements() ?? [])
      expect(read.flat().map(item => item.get('name')?.asString())).toEqual(
        items.map(item => item.get('name')?.asString()),
      )
      if (items.length > 0) expect(read.every(page => page.length > 0 && page.length <= 1000)).toBe(true)
      const cursors = pages.map(page => page.get('nextCursor')?.asString())
      expect(cursors.map(cursor => cursor && lists.openCursor(cursor))).toEqual(
        pages.map((_, i) => (i + 1 < pages.length ? { kind: 'tools', hash: 'e', page: i + 1 } : undefined)),
      )
      const isWithin = (page: readonly Json[]) =>
        page.length === 1 || page.reduce((sum, item) => sum + item.toBytes().length + 1, 0) <= 1 << 20
      expect(read.every(isWithin)).toBe(true)
    }),
    { numRuns: 20 },
  )
})

test('a page is built once, when it is requested', () => {
  const items = Array.from({ length: 2500 }, (_, i) => tool(`t${i}`, 10))
  let made = 0
  const counted = items.map(
    (item, i): ShownItem => ({
      exposed: `${i}`,
      get definition() {
        made++
        return item
      },
    }),
  )
  const list = { ...listOf([]), items: counted }
  expect(lists.pageOf('tools', list, 0)).toBe(lists.pageOf('tools', list, 0))
  expect(made).toBe(1000)
  expect(lists.pageOf('tools', list, 2)?.get('tools')?.elements()).toHaveLength(500)
  expect(lists.pageOf('tools', list, 3)).toBeUndefined()
  expect(made).toBe(2500)
})

test('an item larger than a page has its own page', () => {
  const pages = pagesOf('tools', listOf([tool('a', 1), tool('b', 3 << 20), tool('c', 1)]))
  expect(pages.map(page => page.get('tools')?.elements().length)).toEqual([1, 1, 1])
})

test.each(['', 'x', 'l.', 'l.AAAA', 'other.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'])(
  'a foreign cursor (%s) is not read',
  cursor => {
    expect(lists.openCursor(cursor)).toBeUndefined()
  },
)
