import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test } from 'vitest'
import type { InsertTarget } from './sql.ts'
import { openSqlite, type SqliteOptions } from './sqlite.ts'

const temporaryPath = async (): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'dragoman-sqlite-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'test.db')
}

const opened = async (path: string, options?: SqliteOptions) => {
  const db = await openSqlite(path, options)
  onTestFinished(() => db.close().catch(() => undefined))
  return db
}

const withTable = async (path: string, options?: SqliteOptions) => {
  const db = await opened(path, options)
  await db.exec('PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS t (x UNIQUE)')
  return db
}

const INTO_T: InsertTarget = { table: 't', columns: { x: 'text' } }

test('rows come back as they went in', async () => {
  const db = await withTable(await temporaryPath())
  for (const value of ['text', 'ä 😀', 1.5, 2 ** 52, null, new Uint8Array([0, 255])]) {
    await db.run('DELETE FROM t')
    await db.run('INSERT INTO t VALUES (?)', value)
    expect(await db.get('SELECT x FROM t')).toEqual({ x: value })
  }
})

test('a zero byte does not cut a text short', async () => {
  const db = await withTable(await temporaryPath())
  await db.run('INSERT INTO t VALUES (?)', 'before\u0000after')
  expect(await db.get('SELECT x FROM t')).toEqual({ x: 'before\uFFFDafter' })
})

test('closing empties the log into the file', async () => {
  const path = await temporaryPath()
  const db = await openSqlite(path)
  await db.exec('PRAGMA journal_mode = WAL; CREATE TABLE t (x)')
  await db.run('INSERT INTO t VALUES (1)')
  await db.close()
  expect((await stat(`${path}-wal`).catch(() => ({ size: 0 }))).size).toBe(0)
})

test('full-text search is there', async () => {
  const db = await opened(':memory:')
  await db.exec("CREATE VIRTUAL TABLE f USING fts5(x, tokenize = 'porter unicode61')")
  await db.run('INSERT INTO f VALUES (?)', 'running wolves')
  expect(await db.all('SELECT x FROM f WHERE f MATCH ?', 'wolf OR run')).toHaveLength(1)
})

test('a transaction that fails leaves nothing, and the next one works', async () => {
  const db = await withTable(await temporaryPath())
  const failing = db.transaction(async sql => {
    await sql.run('INSERT INTO t VALUES (1)')
    throw new Error('changed my mind')
  })
  await expect(failing).rejects.toThrow('changed my mind')
  await db.transaction(sql => sql.run('INSERT INTO t VALUES (2)'))
  expect(await db.all('SELECT x FROM t')).toEqual([{ x: 2 }])
})

test('concurrent transactions of one connection run one after the other', async () => {
  const db = await withTable(await temporaryPath())
  const insert = (at: number) =>
    db.transaction(async sql => {
      const before = (await sql.get<{ n: number }>('SELECT count(*) AS n FROM t'))?.n
      await setImmediate() // Other transactions begin meanwhile.
      await sql.run('INSERT INTO t VALUES (?)', at)
      expect(await sql.get('SELECT count(*) AS n FROM t')).toEqual({ n: (before ?? 0) + 1 })
    })
  await Promise.all(Array.from({ length: 50 }, (_, at) => insert(at)))
  expect(await db.get('SELECT count(*) AS n FROM t')).toEqual({ n: 50 })
})

test('a read during a transaction waits for its end and sees all of it or nothing', async () => {
  const db = await withTable(await temporaryPath())
  const writing = db.transaction(async sql => {
    await sql.run('INSERT INTO t VALUES (1)')
    await setImmediate()
    await sql.run('INSERT INTO t VALUES (2)')
  })
  const count = 'SELECT count(*) AS n FROM t'
  expect(await db.transaction(sql => sql.get(count), { readOnly: true })).toEqual({ n: 2 })
  await writing
  const failing = db.transaction(async sql => {
    await sql.run('INSERT INTO t VALUES (3)')
    await setImmediate()
    throw new Error('changed my mind')
  })
  const read = db.get(count)
  await expect(failing).rejects.toThrow('changed my mind')
  expect(await read).toEqual({ n: 2 })
})

test('insert returns the id of a new row, and undefined for one that was skipped', async () => {
  const db = await opened(':memory:')
  await db.exec('CREATE TABLE u (id INTEGER PRIMARY KEY, x UNIQUE)')
  const sql = 'INSERT INTO u (x) VALUES (?) ON CONFLICT DO NOTHING'
  expect([await db.insert(sql, 'a'), await db.insert(sql, 'a'), await db.insert(sql, 'b')]).toEqual([1, undefined, 2])
  const into: InsertTarget = { table: 'u', columns: { x: 'text' } }
  expect(await db.insertAll({ ...into, returnsIds: true }, [['c'], ['d']])).toEqual([3, 4])
  await db.insertAll({ ...into, ignoresConflicts: true }, [['d'], ['e']])
  expect(await db.all(`SELECT x FROM u WHERE ${db.dialect.inList('x')}`, ['a', 'e', 'z'])).toHaveLength(2)
})

test('a writer waits for another connection without blocking the process', async () => {
  const path = await temporaryPath()
  const [one, other] = [await withTable(path), await withTable(path)]
  await one.exec('BEGIN IMMEDIATE')
  await one.run('INSERT INTO t VALUES (1)')
  const waiting = other.transaction(sql => sql.run('INSERT INTO t VALUES (2)'))
  for (let turn = 0; turn < 5; turn++) await setImmediate()
  await one.exec('COMMIT')
  await waiting
  expect(await one.all('SELECT x FROM t ORDER BY x')).toEqual([{ x: 1 }, { x: 2 }])
})

test('a statement that waits too long for a lock fails as busy', async () => {
  const path = await temporaryPath()
  const [one, other] = [await withTable(path), await withTable(path, { lockTimeoutMs: 50 })]
  await one.exec('BEGIN IMMEDIATE')
  await expect(other.transaction(async () => undefined)).rejects.toMatchObject({ name: 'SqlError', kind: 'busy' })
  await one.exec('ROLLBACK')
})

test('errors have their kind', async () => {
  const path = await temporaryPath()
  const db = await withTable(path)
  await db.run('INSERT INTO t VALUES (1)')
  await expect(db.run('INSERT INTO t VALUES (1)')).rejects.toMatchObject({ kind: 'constraint' })
  await expect(db.exec('SELECT nonsense')).rejects.toMatchObject({ kind: 'other' })
  await db.exec('PRAGMA max_page_count = 4')
  await expect(db.run('INSERT INTO t VALUES (zeroblob(100000))')).rejects.toMatchObject({ kind: 'full' })
  const reader = await opened(path, { readOnly: true })
  await expect(reader.run('INSERT INTO t VALUES (2)')).rejects.toMatchObject({ kind: 'readonly' })
  await writeFile(`${path}.txt`, 'this is no database, it is a text'.repeat(100))
  const text = await opened(`${path}.txt`)
  await expect(text.get('SELECT * FROM sqlite_schema')).rejects.toMatchObject({ kind: 'foreign' })
  await expect(openSqlite(join(path, 'nowhere.db'))).rejects.toMatchObject({ kind: 'unreachable' })
})

test('a snapshot is of one moment, however slowly it is read', async () => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const db = await withTable(await temporaryPath())
  await db.insertAll(
    INTO_T,
    Array.from({ length: 1000 }, (_, at) => [`row ${at}`]),
  )
  const { sql, close } = await db.snapshot()
  await db.run('DELETE FROM t')
  let count = 0
  for (let after = 0; after < 1000; after += 100) {
    const rows = await sql.all<{ x: string }>('SELECT x FROM t WHERE rowid > ? ORDER BY rowid LIMIT 100', after)
    for (const { x } of rows) expect(x).toBe(`row ${count++}`)
    await setImmediate()
    gc() // The bundled driver frees statements that are collected, even while they are used.
  }
  await close()
  expect(count).toBe(1000)
  expect(await db.get('SELECT count(*) AS n FROM t')).toEqual({ n: 0 })
})

test('a long statement does not block the process, and writers wait for it', async () => {
  const path = await temporaryPath()
  const db = await withTable(path)
  const rows = Array.from({ length: 20_000 }, (_, at) => [`${at} ${'x'.repeat(200)}`])
  await db.transaction(sql => sql.insertAll(INTO_T, rows))
  let turns = 0
  let isOver = false
  const running = db.runLong('VACUUM').then(() => {
    isOver = true
  })
  const written = db.transaction(sql => {
    expect(isOver).toBe(true)
    return sql.run("INSERT INTO t VALUES ('after')")
  })
  while (!isOver) {
    await setImmediate()
    turns++
  }
  await Promise.all([running, written])
  expect(turns).toBeGreaterThan(10)
  expect(await db.get('SELECT count(*) AS n FROM t')).toEqual({ n: 20_001 })
})

test('a long statement that fails has its kind, and writers wait no longer', async () => {
  const path = await temporaryPath()
  const db = await withTable(path)
  await expect(db.runLong('VACUUM INTO ?', join(path, 'nowhere', 'x'))).rejects.toMatchObject({ kind: 'unreachable' })
  await expect(db.runLong('SELECT nonsense')).rejects.toMatchObject({ kind: 'other' })
  await db.transaction(sql => sql.run('INSERT INTO t VALUES (1)'))
  expect(await db.all('SELECT x FROM t')).toEqual([{ x: 1 }])
})

test('a list is bound as its texts are stored', async () => {
  const db = await withTable(await temporaryPath())
  const texts = ['zero\0byte', 'half a \ud83d pair', 'plain']
  await db.insertAll(
    INTO_T,
    texts.map(text => [text]),
  )
  expect(await db.all(`SELECT x FROM t WHERE ${db.dialect.inList('x')}`, texts)).toHaveLength(3)
})

test('a long statement on a database in memory waits for the transaction that runs', async () => {
  const db = await withTable(':memory:')
  const writing = db.transaction(async sql => {
    await sql.run('INSERT INTO t VALUES (1)')
    await setImmediate()
  })
  await db.runLong('VACUUM')
  await writing
  expect(await db.all('SELECT x FROM t')).toHaveLength(1)
})
