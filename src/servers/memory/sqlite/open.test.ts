import { readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { episodeOf, tell, temporaryFolder, temporaryStore } from '../../../../test/support/memory/sqlite-store.ts'
import { openSqlite } from '../../../stores/sqlite.ts'
import { migrate, openMemoryFile } from './open.ts'
import { APPLICATION_ID, MIGRATIONS } from './schema.ts'
import { createSqliteStore, openSqliteStore } from './store.ts'

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
  'a file cut to %d of its length is refused with what to do, and left as it is',
  async share => {
    const path = await filled()
    await truncate(path, Math.floor(((await stat(path)).size * share) / 4096) * 4096 + 100)
    await refused(path, 'damaged', /truncated.*backup/s)
  },
)

test('a file that is no database is refused with what to do, and left as it is', async () => {
  const path = await temporaryPath()
  await writeFile(path, 'dear diary, '.repeat(1_000))
  await refused(path, 'foreign', /not a memory database.*backup/)
})

test('a database of another program is refused, and left as it is', async () => {
  const path = await temporaryPath()
  const other = await openSqlite(path)
  other.exec('CREATE TABLE theirs (x)')
  other.close()
  await refused(path, 'foreign', /another program/)
})

test('a file of a newer version is refused, and left as it is', async () => {
  const path = await filled()
  const db = await openSqlite(path)
  db.exec(`PRAGMA user_version = ${MIGRATIONS.length + 1}`)
  db.close()
  await refused(path, 'foreign', /newer version.*Update/)
})

test('a file whose making was cut short is made anew', async () => {
  const path = await temporaryPath()
  const db = await openSqlite(path)
  db.exec('PRAGMA journal_mode = WAL; PRAGMA user_version = 0')
  db.close()
  const store = await openSqliteStore({ path })
  expect((await tell(store, 'Ann: Hello.')).outcome).toBe('created')
  await store.close()
})

test('an older file is brought up to date with all that is in it; a step that fails leaves it as it was', async () => {
  const path = await filled()
  const db = await openSqlite(path)
  const steps = [...MIGRATIONS, "ALTER TABLE episode ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'"]
  await expect(migrate(db, [...steps, 'CREATE TABLE half (x); nonsense'])).rejects.toThrow(/nonsense/)
  expect(db.get('PRAGMA user_version')).toEqual({ user_version: MIGRATIONS.length + 1 })
  expect(db.get("SELECT 1 FROM sqlite_schema WHERE name = 'half'")).toBeUndefined()
  expect(db.get("SELECT count(*) AS n FROM episode WHERE mood = 'calm'")).toEqual({ n: 30 })
  expect(db.get('PRAGMA application_id')).toEqual({ application_id: APPLICATION_ID })
  db.close()
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
  const store = createSqliteStore(db, Date.now)
  onTestFinished(() => store.close())
  await tell(store, 'Ann: Before.')
  const pages = Number(db.get<{ page_count: number }>('PRAGMA page_count')?.page_count)
  db.exec(`PRAGMA max_page_count = ${pages + 4}`)
  const [episode, enrichment] = episodeOf(`Ann: ${'Something long. '.repeat(5_000)}`)
  await expect(store.add(episode, enrichment)).rejects.toMatchObject({
    kind: 'full',
    message: expect.stringMatching(/Make room/),
  })
  expect(await store.episodes({ groups: 'all', limit: 9 })).toHaveLength(1)
  db.exec('PRAGMA max_page_count = 100000')
  expect((await store.add(episode, enrichment)).outcome).toBe('created')
  expect(db.get('PRAGMA integrity_check')).toEqual({ integrity_check: 'ok' })
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
