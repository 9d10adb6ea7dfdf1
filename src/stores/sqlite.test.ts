import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test } from 'vitest'
import { openSqlite, type SqliteOptions } from './sqlite.ts'

const temporaryPath = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-sqlite-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'test.db')
}

const opened = async (path: string, options?: SqliteOptions) => {
  const db = await openSqlite(path, options)
  onTestFinished(() => db.close())
  return db
}

const withTable = async (path: string, options?: SqliteOptions) => {
  const db = await opened(path, options)
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS t (x UNIQUE)')
  return db
}

test('rows come back as they went in', async () => {
  const db = await withTable(await temporaryPath())
  for (const value of ['text', 'ä 😀', 1.5, 2 ** 52, null, new Uint8Array([0, 255])]) {
    db.run('DELETE FROM t')
    db.run('INSERT INTO t VALUES (?)', value)
    expect(db.get('SELECT x FROM t')).toEqual({ x: value })
  }
})

test('a zero byte does not cut a text short', async () => {
  const db = await withTable(await temporaryPath())
  db.run('INSERT INTO t VALUES (?)', 'before\u0000after')
  expect(db.get('SELECT x FROM t')).toEqual({ x: 'before\uFFFDafter' })
})

test('closing empties the log into the file', async () => {
  const path = await temporaryPath()
  const db = await openSqlite(path)
  db.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x)')
  db.run('INSERT INTO t VALUES (1)')
  db.close()
  expect((await stat(`${path}-wal`).catch(() => ({ size: 0 }))).size).toBe(0)
})

test('full-text search is there', async () => {
  const db = await opened(':memory:')
  db.exec("CREATE VIRTUAL TABLE f USING fts5(x, tokenize = 'porter unicode61')")
  db.run('INSERT INTO f VALUES (?)', 'running wolves')
  expect(db.all('SELECT x FROM f WHERE f MATCH ?', 'wolf OR run')).toHaveLength(1)
})

test('a transaction that fails leaves nothing and the next one works', async () => {
  const db = await withTable(await temporaryPath())
  const failing = db.write(() => {
    db.run('INSERT INTO t VALUES (1)')
    throw new Error('thought better of it')
  })
  await expect(failing).rejects.toThrow('thought better of it')
  await db.write(() => db.run('INSERT INTO t VALUES (2)'))
  expect(db.all('SELECT x FROM t')).toEqual([{ x: 2 }])
})

test('transactions begun at the same time do not fall into each other', async () => {
  const db = await withTable(await temporaryPath())
  await Promise.all(Array.from({ length: 50 }, (_, at) => db.write(() => db.run('INSERT INTO t VALUES (?)', at))))
  expect(db.get('SELECT count(*) AS n FROM t')).toEqual({ n: 50 })
})

test('a writer waits for another connection without blocking the process', async () => {
  const path = await temporaryPath()
  const [one, other] = [await withTable(path), await withTable(path)]
  one.exec('BEGIN IMMEDIATE')
  one.run('INSERT INTO t VALUES (1)')
  const waiting = other.write(() => other.run('INSERT INTO t VALUES (2)'))
  for (let turn = 0; turn < 5; turn++) await setImmediate()
  one.exec('COMMIT')
  await waiting
  expect(one.all('SELECT x FROM t ORDER BY x')).toEqual([{ x: 1 }, { x: 2 }])
})

test('patience ends, and says that the file is busy', async () => {
  const path = await temporaryPath()
  const [one, other] = [await withTable(path), await withTable(path, { patience: 50 })]
  one.exec('BEGIN IMMEDIATE')
  await expect(other.write(() => undefined)).rejects.toMatchObject({ name: 'SqliteError', kind: 'busy' })
  one.exec('ROLLBACK')
})

test('refusals have their kind', async () => {
  const path = await temporaryPath()
  const db = await withTable(path)
  db.run('INSERT INTO t VALUES (1)')
  expect(() => db.run('INSERT INTO t VALUES (1)')).toThrow(expect.objectContaining({ kind: 'constraint' }))
  expect(() => db.exec('SELECT nonsense')).toThrow(expect.objectContaining({ kind: 'other' }))
  db.exec('PRAGMA max_page_count = 4')
  expect(() => db.run('INSERT INTO t VALUES (zeroblob(100000))')).toThrow(expect.objectContaining({ kind: 'full' }))
  const reader = await opened(path, { readOnly: true })
  expect(() => reader.run('INSERT INTO t VALUES (2)')).toThrow(expect.objectContaining({ kind: 'readonly' }))
  await writeFile(`${path}.txt`, 'this is no database, it is a text'.repeat(100))
  const text = await opened(`${path}.txt`)
  expect(() => text.get('SELECT * FROM sqlite_schema')).toThrow(expect.objectContaining({ kind: 'foreign' }))
  await expect(openSqlite(join(path, 'nowhere.db'))).rejects.toMatchObject({ kind: 'unreachable' })
})

test('rows can be read slowly: what reads them is not collected meanwhile', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const db = await withTable(await temporaryPath())
  await db.write(() => {
    for (let at = 0; at < 1000; at++) db.run('INSERT INTO t VALUES (?)', `row ${at}`)
  })
  let count = 0
  for (const row of db.each<{ x: string }>('SELECT x FROM t ORDER BY rowid')) {
    expect(row.x).toBe(`row ${count++}`)
    if (count % 100 > 0) continue
    await setImmediate()
    gc()
  }
  expect(count).toBe(1000)
})

test('what runs aside does its work without stopping the process, and writers wait for it', async () => {
  const path = await temporaryPath()
  const db = await withTable(path)
  await db.write(() => {
    for (let at = 0; at < 20_000; at++) db.run('INSERT INTO t VALUES (?)', `${at} ${'x'.repeat(200)}`)
  })
  let turns = 0
  let isOver = false
  const running = db.aside('VACUUM').then(() => {
    isOver = true
  })
  const written = db.write(() => {
    expect(isOver).toBe(true)
    return db.run("INSERT INTO t VALUES ('after')")
  })
  while (!isOver) {
    await setImmediate()
    turns++
  }
  await Promise.all([running, written])
  expect(turns).toBeGreaterThan(10)
  expect(db.get('SELECT count(*) AS n FROM t')).toEqual({ n: 20_001 })
})

test('what is refused aside has its kind, and nothing waits for it any more', async () => {
  const path = await temporaryPath()
  const db = await withTable(path)
  await expect(db.aside('VACUUM INTO ?', join(path, 'nowhere', 'x'))).rejects.toMatchObject({ kind: 'unreachable' })
  await expect(db.aside('SELECT nonsense')).rejects.toMatchObject({ kind: 'other' })
  await db.write(() => db.run('INSERT INTO t VALUES (1)'))
  expect(db.all('SELECT x FROM t')).toEqual([{ x: 1 }])
})
