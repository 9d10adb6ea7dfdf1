import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { episodeOf, tell, temporaryFolder, temporaryStore } from '../../../../test/support/memory/sqlite-store.ts'
import { migrate } from '../../../stores/migrations.ts'
import { openSqlite } from '../../../stores/sqlite.ts'
import { fileOf, openSqliteStore, openSqliteStores } from '../open-stores.ts'
import type { MemoryStore } from '../store.ts'
import { createMemoryStore } from './memory-store.ts'
import { createSqliteEngine } from './sqlite-engine.ts'
import { APPLICATION_ID, openMemoryFile, SQLITE_MIGRATIONS, SQLITE_VERSION } from './sqlite-file.ts'

const temporaryPath = async (): Promise<string> => join(await temporaryFolder(), 'memory.db')

/** A closed file with some episodes in it. */
const filled = async (): Promise<string> => {
  const path = await temporaryPath()
  const store = await openSqliteStore({ path })
  for (let at = 0; at < 30; at++) await tell(store, `Ann: ${'Word '.repeat(100)} ${at}.`)
  await store.close()
  return path
}

const refused = async (path: string, kind: string, message: RegExp): Promise<void> => {
  const before = await readFile(path)
  await expect(openSqliteStore({ path })).rejects.toMatchObject({ kind, message: expect.stringMatching(message) })
  expect((await readFile(path)).equals(before)).toBe(true)
}

test('what was stored is there after closing and opening', async () => {
  const store = await openSqliteStore({ path: await filled() })
  expect(await store.episodes({ groups: 'all', limit: 99 })).toHaveLength(30)
  await store.close()
  await store.close()
  await expect(store.stats()).rejects.toMatchObject({ kind: 'closed' })
})

test.each([0.9, 0.5, 0.1])(
  'a file cut to %d of its length is rejected with what to do, and not changed',
  async share => {
    const path = await filled()
    await truncate(path, Math.floor(((await stat(path)).size * share) / 4096) * 4096 + 100)
    await refused(path, 'damaged', /truncated.*backup/s)
  },
)

test('a file that is no database is rejected with what to do, and not changed', async () => {
  const path = await temporaryPath()
  await writeFile(path, 'dear diary, '.repeat(1_000))
  await refused(path, 'foreign', /not a memory database.*backup/)
})

test('a database of another program is rejected, and not changed', async () => {
  const path = await temporaryPath()
  const other = await openSqlite(path)
  await other.exec('CREATE TABLE theirs (x)')
  await other.close()
  await refused(path, 'foreign', /another program/)
})

test('a file of a newer version is rejected, and not changed', async () => {
  const path = await filled()
  const db = await openSqlite(path)
  await db.exec(`PRAGMA user_version = ${SQLITE_MIGRATIONS.length + 1}`)
  await db.close()
  await refused(path, 'foreign', /newer version.*Update/)
})

test('a file whose creation was interrupted is created again', async () => {
  const path = await temporaryPath()
  const db = await openSqlite(path)
  await db.exec('PRAGMA journal_mode = WAL; PRAGMA user_version = 0')
  await db.close()
  const store = await openSqliteStore({ path })
  expect((await tell(store, 'Ann: Hello.')).outcome).toBe('created')
  await store.close()
})

test('an older file is brought up to date with all that is in it; a step that fails leaves it as it was', async () => {
  const path = await filled()
  const db = await openSqlite(path)
  const steps = [...SQLITE_MIGRATIONS, "ALTER TABLE episode ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'"]
  await expect(migrate(db, [...steps, 'CREATE TABLE half (x); nonsense'], SQLITE_VERSION)).rejects.toThrow(/nonsense/)
  expect(await db.get('PRAGMA user_version')).toEqual({ user_version: SQLITE_MIGRATIONS.length + 1 })
  expect(await db.get("SELECT 1 FROM sqlite_schema WHERE name = 'half'")).toBeUndefined()
  expect(await db.get("SELECT count(*) AS n FROM episode WHERE mood = 'calm'")).toEqual({ n: 30 })
  expect(await db.get('PRAGMA application_id')).toEqual({ application_id: APPLICATION_ID })
  await db.close()
})

test('two openers of a new file both get a whole one', async () => {
  const path = await temporaryPath()
  const [one, other] = await Promise.all([openSqliteStore({ path }), openSqliteStore({ path })])
  await Promise.all([tell(one, 'Ann: One.'), tell(other, 'Bob: Two.')])
  expect(await one.episodes({ groups: 'all', limit: 9 })).toHaveLength(2)
  await one.close()
  await other.close()
})

test('a full disk is said, nothing of the call is stored, and the file stays usable', async () => {
  const path = await temporaryPath()
  const db = await openMemoryFile(path)
  const store = createMemoryStore(createSqliteEngine(db))
  onTestFinished(() => store.close())
  await tell(store, 'Ann: Before.')
  const pages = (await db.get<{ page_count: number }>('PRAGMA page_count'))?.page_count ?? 0
  await db.exec(`PRAGMA max_page_count = ${pages + 4}`)
  const [episode, enrichment] = episodeOf(`Ann: ${'Something long. '.repeat(5_000)}`)
  await expect(store.add(episode, enrichment)).rejects.toMatchObject({
    kind: 'full',
    message: expect.stringMatching(/Make room/),
  })
  expect(await store.episodes({ groups: 'all', limit: 9 })).toHaveLength(1)
  await db.exec('PRAGMA max_page_count = 100000')
  expect((await store.add(episode, enrichment)).outcome).toBe('created')
  expect(await db.get('PRAGMA integrity_check')).toEqual({ integrity_check: 'ok' })
})

test('a backup is a whole store, made while it is in use, and never half there', async () => {
  const store = await temporaryStore()
  for (let at = 0; at < 20; at++) await tell(store, `Ann: Sentence ${at}.`)
  const path = `${store.path}.backup`
  const [{ bytes }] = await Promise.all([store.backup(path), tell(store, 'Ann: Meanwhile.')])
  expect(bytes).toBe((await stat(path)).size)
  const copy = await openSqliteStore({ path })
  expect((await copy.episodes({ groups: 'all', limit: 99 })).length).toBeGreaterThanOrEqual(20)
  await copy.close()
  await expect(store.backup(join(store.path, 'nowhere', 'x'))).rejects.toMatchObject({ name: 'StoreError' })
})

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

test('only the owner can read a memory, its log or a backup of it', async () => {
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

test('a path below a file is rejected with what to check', async () => {
  const file = join(await temporaryFolder(), 'file')
  await writeFile(file, 'no folder')
  await expect(openSqliteStore({ path: join(file, 'memory.db') })).rejects.toMatchObject({
    name: 'StoreError',
    message: expect.stringMatching(/folder.*permissions/),
  })
})

test('a folder at the path of the file is rejected', async () => {
  const path = join(await temporaryFolder(), 'memory.db')
  await mkdir(path)
  await expect(openSqliteStore({ path })).rejects.toMatchObject({ name: 'StoreError' })
  expect((await stat(dirname(path))).isDirectory()).toBe(true)
})

const LEAVE_WAL = `
let DatabaseSync
try {
  DatabaseSync = require('node:sqlite').DatabaseSync
} catch {
  DatabaseSync = require('@photostructure/sqlite').DatabaseSync
}
const database = new DatabaseSync(process.argv[1])
let mode
try {
  mode = Object.values(database.prepare('PRAGMA journal_mode = DELETE').get())[0]
} catch (error) {
  mode = error.message
}
console.log(mode)
`

test('another process is still locked out after the files were searched for what was forgotten', async () => {
  const store = await temporaryStore()
  await tell(store, 'Ann: The cello is gone.')
  await store.forget({ kind: 'group', group: 'main' })
  // Only a process that has the file for itself can leave the log; it would be damaged for all others.
  const { stdout } = await promisify(execFile)(process.execPath, ['-e', LEAVE_WAL, store.path])
  expect(stdout).toMatch(/locked/)
})
