import { copyFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tell, temporaryFolder } from '../../../test/support/memory/sqlite-store.ts'
import { fileOf, openSqliteStores, type SqliteStoresOptions } from './open-stores.ts'
import type { MemoryStore } from './store.ts'

const stores = async (options: Partial<SqliteStoresOptions> = {}) => {
  const folder = await temporaryFolder()
  const opened = openSqliteStores({ folder, ...options })
  onTestFinished(() => opened.close())
  return { folder, ...opened }
}

const contents = async (store: MemoryStore): Promise<string[]> =>
  (await store.episodes({ groups: 'all', limit: 99 })).map(episode => episode.content)

const NAMES = [
  'a',
  'A',
  'a/b',
  'a_b',
  'a-b',
  '../a',
  '..',
  '',
  'ä',
  'a\u0000',
  'x'.repeat(5_000),
  'x'.repeat(5_001),
  'CON',
  'a b',
  'a  b',
]

test('every tenant has a file of its own, whatever it is called', async () => {
  const { folder, ...all } = await stores()
  for (const name of NAMES) await all.with(name, store => tell(store, `Ann: I am ${name.slice(0, 20)} ${name.length}.`))
  for (const name of NAMES) expect(await all.with(name, contents)).toHaveLength(1)
  const files = (await readdir(folder)).filter(file => file.endsWith('.db'))
  expect(files.toSorted()).toEqual(NAMES.map(fileOf).toSorted())
  expect(new Set(files.map(file => file.toLowerCase())).size).toBe(NAMES.length)
  expect(new Set(await all.tenants())).toEqual(new Set(NAMES))
})

test('a file of another tenant is rejected', async () => {
  const { folder, ...all } = await stores()
  await all.with('ann', store => tell(store, 'Ann: Mine.'))
  await all.close()
  await copyFile(join(folder, fileOf('ann')), join(folder, fileOf('bob')))
  const again = openSqliteStores({ folder })
  await expect(again.with('bob', contents)).rejects.toThrow(/another tenant/)
  expect(await again.with('ann', contents)).toEqual(['Ann: Mine.'])
  await again.close()
})

test('no more files are open than allowed, and further calls wait', async () => {
  const all = await stores({ mostOpen: 2 })
  const open = new Set<MemoryStore>()
  let most = 0
  const use = (name: string) =>
    all.with(name, async store => {
      open.add(store)
      most = Math.max(most, open.size)
      await tell(store, `Ann: ${name}.`)
      open.delete(store)
    })
  await Promise.all(Array.from({ length: 30 }, (_, at) => use(`tenant ${at % 7}`)))
  expect(most).toBeLessThanOrEqual(2)
  expect(await all.tenants()).toHaveLength(7)
})

test('an idle file is closed and opened again when needed', async () => {
  const all = await stores({ idleMs: 1 })
  const first = await all.with('ann', async store => store)
  await expect
    .poll(() =>
      first.stats().then(
        () => 'open',
        error => error.kind,
      ),
    )
    .toBe('closed')
  expect(await all.with('ann', contents)).toEqual([])
})

test('a file in use is not closed under its user, however long another waits for its place', async () => {
  const all = await stores({ idleMs: 1, mostOpen: 1 })
  const { others } = await all.with('ann', async store => {
    const others = all.with('bob', contents)
    expect((await tell(store, 'Ann: Still here.')).outcome).toBe('created')
    return { others }
  })
  expect(await others).toEqual([])
})

test('a call that waits for a file when the memories are closed is rejected', async () => {
  const all = await stores({ mostOpen: 1 })
  let leave = (): void => {}
  let holding: Promise<void> | undefined
  await new Promise<void>(inside => {
    holding = all.with('ann', () => {
      inside()
      return new Promise<void>(resolve => {
        leave = resolve
      })
    })
  })
  const waiting = all.with('bob', contents)
  const closing = all.close()
  leave()
  await expect(waiting).rejects.toMatchObject({ kind: 'closed' })
  await Promise.all([holding, closing])
  expect((await readdir(all.folder)).filter(file => file === fileOf('bob'))).toEqual([])
})
