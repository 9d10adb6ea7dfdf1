import { mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createTestLog } from '../../test/support/log.ts'
import { createLearntFiles } from './learnt-files.ts'

const LISTS = Buffer.from('{"lists":1}')

const files = async () => {
  const data = await mkdtemp(join(tmpdir(), 'dragoman-learnt-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const { log, lines } = createTestLog()
  const folder = join(data, 'lists')
  return { store: createLearntFiles(data, log), folder, lines, names: () => readdir(folder) }
}

test('a text is kept in a file that only its owner can read', async () => {
  const { store, folder, lines } = await files()
  expect(await store.load('a')).toBeUndefined()
  await store.save('a', LISTS)
  expect(await store.load('a')).toEqual(LISTS)
  expect((await stat(join(folder, 'a.json'))).mode & 0o777).toBe(0o600)
  expect((await stat(folder)).mode & 0o777).toBe(0o700)
  expect(lines).toEqual([])
})

test('the draft of a gateway that was killed is never read, and deleted after an hour', async () => {
  const { store, folder, names } = await files()
  await store.save('a', LISTS)
  for (const draft of ['a.json.0a.tmp', 'a.json.0b.tmp']) await writeFile(join(folder, draft), '{"li')
  await utimes(join(folder, 'a.json.0a.tmp'), 0, 0)
  expect(await store.load('a')).toEqual(LISTS)
  await store.save('b', LISTS)
  expect((await names()).sort()).toEqual(['a.json', 'a.json.0b.tmp', 'b.json']) // another gateway may write the other one
})

test('a text that no gateway has used for a month is deleted', async () => {
  const { store, folder, names } = await files()
  for (const key of ['old', 'used']) {
    await store.save(key, LISTS)
    await utimes(join(folder, `${key}.json`), 0, 0)
  }
  await store.load('used')
  await expect.poll(async () => (await stat(join(folder, 'used.json'))).mtimeMs).toBeGreaterThan(0)
  await store.save('new', LISTS)
  expect((await names()).sort()).toEqual(['new.json', 'used.json'])
})

test('a text beyond the limit is neither kept nor read', async () => {
  const { store, folder, names } = await files()
  await store.save('a', LISTS)
  await store.save('a', Buffer.alloc(16 * 1024 * 1024 + 1, ' '))
  expect(await names()).toEqual([])
  await writeFile(join(folder, 'b.json'), '')
  await truncate(join(folder, 'b.json'), 16 * 1024 * 1024 + 1)
  expect(await store.load('b')).toBeUndefined()
})

test('files beyond the limit of the folder are deleted, those used last are kept', async () => {
  const { store, folder, names } = await files()
  await store.save('a', LISTS)
  for (let i = 0; i < 9; i++) {
    const file = join(folder, `${i}.json`)
    await writeFile(file, '')
    await truncate(file, 16 * 1024 * 1024)
    await utimes(file, new Date(Date.now() - (i + 1) * 60_000), new Date(Date.now() - (i + 1) * 60_000))
  }
  await store.save('b', LISTS)
  expect(await names()).not.toContain('8.json')
  expect(await names()).toEqual(expect.arrayContaining(['0.json', '6.json', 'a.json', 'b.json']))
})

test('a folder that cannot be written is reported once', async () => {
  const { store, folder, lines } = await files()
  await writeFile(folder, 'not a folder')
  for (const key of ['a', 'b']) await store.save(key, LISTS)
  expect(lines).toMatchObject([{ level: 'warn', fields: { folder }, message: expect.stringContaining('not stored') }])
})
