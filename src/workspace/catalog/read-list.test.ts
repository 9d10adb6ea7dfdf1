import { expect, test } from 'vitest'
import { toolsOf } from '../../../test/support/scripted-member.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import { Json, type Plain } from '../../wire/json/json.ts'
import { readList } from './read-list.ts'

/** Pages by the cursor that asks for them. */
const book = (pages: Readonly<Record<string, Plain>>) => {
  const asked: (string | undefined)[] = []
  const page = async (params: Json): Promise<Json> => {
    const cursor = params.get('cursor')?.asString()
    asked.push(cursor)
    return Json.of(pages[cursor ?? 'first'] ?? {})
  }
  return { asked, page }
}

const names = ({ items }: { items: readonly { original: string }[] }) => items.map(({ original }) => original)

test('pages are read one after the other, and an empty string is a cursor', async () => {
  const { asked, page } = book({
    first: { tools: toolsOf('a'), nextCursor: '' },
    '': { tools: toolsOf('b'), nextCursor: '2' },
    2: { tools: toolsOf('c') },
  })
  const list = await readList('tools', page)
  expect(names(list)).toEqual(['a', 'b', 'c'])
  expect(asked).toEqual([undefined, '', '2'])
  expect(list).toMatchObject({ faults: [], isComplete: true })
})

test('repeated cursors end the list; the pages so far are kept and the fault is reported', async () => {
  const { asked, page } = book({
    first: { tools: toolsOf('a'), nextCursor: 'x' },
    x: { tools: toolsOf('b'), nextCursor: 'y' },
    y: { tools: toolsOf('c'), nextCursor: 'x' },
  })
  const list = await readList('tools', page)
  expect(names(list)).toEqual(['a', 'b', 'c'])
  expect(asked).toHaveLength(3)
  expect(list).toMatchObject({ faults: ['its cursors repeat'], isComplete: false })
})

test('an endless list is cut after 64 pages', async () => {
  let pages = 0
  const list = await readList('tools', async () =>
    Json.of({ tools: toolsOf(`t${pages}`), nextCursor: `cursor ${pages++}` }),
  )
  expect(pages).toBe(64)
  expect(list.items).toHaveLength(64)
  expect(list.faults).toEqual(['it has more than 64 pages'])
})

test('of duplicate names the first is used, and items without a name are left out', async () => {
  const { page } = book({
    first: { tools: [{ name: 'a', description: 'one' }, { name: 'a', description: 'two' }, 7, {}, { name: 3 }] },
  })
  const list = await readList('tools', page)
  expect(list.items.map(({ shown: json }) => json.toValue())).toEqual([{ name: 'a', description: 'one' }])
  expect(list.faults).toEqual(['1 duplicate names; the first of each is used', '3 items without "name"'])
  expect(list.isComplete).toBe(true)
})

test('a result without an array is an empty list', async () => {
  for (const tools of [null, 'x', {}, 1] as const) {
    const { page } = book({ first: { tools } })
    expect((await readList('tools', page)).items).toEqual([])
  }
})

test('a definition keeps its bytes, and so does an invalid schema', async () => {
  const text = '{ "name":"a", "inputSchema":{"type":12345678901234567890,"x":1.0},\n"unknown":[1e2] }'
  const page = async () => Json.parse(Buffer.from(`{"tools":[${text}]}`))
  const list = await readList('tools', page)
  expect(list.items[0]?.shown.toString()).toBe(text)
})

test('a schema of 30 MiB is kept; items beyond 32 MiB are left out and reported', async () => {
  const large = (name: string, mib: number) => ({ name, inputSchema: { $comment: 'x'.repeat(mib << 20) } })
  const { asked, page } = book({
    first: { tools: [large('a', 30)], nextCursor: '1' },
    1: { tools: [...toolsOf('b'), large('c', 3), ...toolsOf('d')], nextCursor: '2' },
    2: { tools: toolsOf('e') },
  })
  const list = await readList('tools', page)
  expect(names(list)).toEqual(['a', 'b'])
  expect(list).toMatchObject({ faults: ['it is larger than 32 MiB'], isComplete: false })
  expect(asked).toEqual([undefined, '1'])
})

test('a failed page fails the list', async () => {
  const failing = readList('tools', async params => {
    if (params.has('cursor')) throw new RpcFailure(rpcError('internal', 'broken'))
    return Json.of({ tools: toolsOf('a'), nextCursor: '1' })
  })
  await expect(failing).rejects.toThrow('broken')
})

test('a list has the shortest ttl of its pages, and is public if all pages are', async () => {
  const read = (...hints: Plain[]) => {
    const pages = hints.map((hint, i) => ({
      ...(hint as object),
      nextCursor: i + 1 < hints.length ? `${i + 1}` : undefined,
    }))
    return readList('tools', async params =>
      Json.of((pages[Number(params.get('cursor')?.asString() ?? 0)] ?? {}) as Plain),
    )
  }
  const open = { ttlMs: 5000, cacheScope: 'public' }
  expect(await read(open, { ...open, ttlMs: 100 })).toMatchObject({ ttlMs: 100, isPublic: true })
  expect(await read(open, { ...open, cacheScope: 'private' })).toMatchObject({ ttlMs: 5000, isPublic: false })
  expect(await read(open, {})).toMatchObject({ isPublic: false })
  expect(await read({ ttlMs: -1 })).toMatchObject({ ttlMs: undefined })
})
