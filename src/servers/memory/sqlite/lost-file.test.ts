import { chmod, mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { tell, temporaryFolder, temporaryStore } from '../../../../test/support/memory/sqlite-store.ts'
import type { MemoryStore } from '../store.ts'
import { openSqliteStore } from './store.ts'
import { fileOf, openSqliteStores } from './tenants.ts'

const contents = async (store: MemoryStore): Promise<string[]> =>
  (await store.episodes({ groups: 'all', limit: 99 })).map(episode => episode.content)

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8)

test('nothing is acknowledged into a file that was deleted, and the next call begins a new one', async () => {
  const folder = join(await temporaryFolder(), 'memory')
  const all = openSqliteStores({ folder })
  onTestFinished(() => all.close())
  await all.with('ann', store => tell(store, 'Ann: Before.'))
  await rm(folder, { recursive: true })
  await expect(all.with('ann', store => tell(store, 'Ann: Into the void.'))).rejects.toMatchObject({
    kind: 'damaged',
    message: expect.stringMatching(/deleted or replaced.*Nothing of this call was stored/),
  })
  await all.with('ann', store => tell(store, 'Ann: After.'))
  await all.close()
  const again = openSqliteStores({ folder })
  onTestFinished(() => again.close())
  expect(await again.with('ann', contents)).toEqual(['Ann: After.'])
})

test('a backup put in the place of a file in use is read from then on', async () => {
  const folder = await temporaryFolder()
  const all = openSqliteStores({ folder })
  onTestFinished(() => all.close())
  const path = join(folder, fileOf('ann'))
  await all.with('ann', async store => {
    await tell(store, 'Ann: Kept.')
    await store.backup(`${path}.backup`)
    await tell(store, 'Ann: Lost with the file.')
  })
  await rename(`${path}.backup`, path)
  await rm(`${path}-wal`, { force: true })
  await rm(`${path}-shm`, { force: true })
  await expect(all.with('ann', contents)).rejects.toMatchObject({ kind: 'damaged' })
  expect(await all.with('ann', contents)).toEqual(['Ann: Kept.'])
})

test('nobody else may read a memory, its log or a backup of it', async () => {
  const store = await temporaryStore()
  await tell(store, 'Ann: A secret.')
  await store.backup(`${store.path}.backup`)
  for (const end of ['', '-wal', '-shm', '.backup']) expect([end, await modeOf(store.path + end)]).toEqual([end, '600'])
})

test('a file that others could read is closed to them when it is opened', async () => {
  const path = join(await temporaryFolder(), 'memory.db')
  await (await openSqliteStore({ path })).close()
  await chmod(path, 0o644)
  await (await openSqliteStore({ path })).close()
  expect(await modeOf(path)).toBe('600')
})

test('a place that cannot be a folder is refused in words, not as a fault of ours', async () => {
  const file = join(await temporaryFolder(), 'file')
  await writeFile(file, 'no folder')
  await expect(openSqliteStore({ path: join(file, 'memory.db') })).rejects.toMatchObject({
    name: 'StoreError',
    message: expect.stringMatching(/folder.*permissions/),
  })
})

test('a folder in the place of the file is refused in words', async () => {
  const path = join(await temporaryFolder(), 'memory.db')
  await mkdir(path)
  await expect(openSqliteStore({ path })).rejects.toMatchObject({ name: 'StoreError' })
  expect((await stat(dirname(path))).isDirectory()).toBe(true)
})
