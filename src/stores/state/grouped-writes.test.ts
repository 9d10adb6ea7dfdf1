import { expect, onTestFinished, test } from 'vitest'
import { SILENT } from '../../telemetry/log.ts'
import { POSTGRES } from '../dialect.ts'
import type { Sql, SqlDatabase } from '../sql.ts'
import { IN_MEMORY, openSqlite } from '../sqlite.ts'
import { GroupedWrites } from './grouped-writes.ts'
import { StoreContact } from './store-contact.ts'

/** Writes to a table of its own; `transactions` counts those with several writes. */
const open = async () => {
  const opened = await openSqlite(IN_MEMORY)
  onTestFinished(() => opened.close())
  await opened.exec('CREATE TABLE t (x TEXT UNIQUE)')
  let transactions = 0
  const transaction: SqlDatabase['transaction'] = (work, options) => {
    transactions++
    return opened.transaction(work, options)
  }
  const database: SqlDatabase = { ...opened, transaction }
  const writes = new GroupedWrites(database, new StoreContact('test', SILENT))
  const insert = (x: string) => writes.run(x, (sql: Sql) => sql.run('INSERT INTO t VALUES (?)', x))
  const stored = async () => (await opened.all<{ x: string }>('SELECT x FROM t ORDER BY x')).map(({ x }) => x)
  return { writes, insert, stored, transactions: () => transactions }
}

test('writes of one turn are one transaction, and each gets its own result', async () => {
  const { writes, insert, stored, transactions } = await open()
  const removed = writes.run('d', sql => sql.run('DELETE FROM t WHERE x = ?', 'a'))
  expect(await Promise.all([insert('a'), insert('b'), removed, insert('c')])).toEqual([1, 1, 0, 1])
  expect(await stored()).toEqual(['a', 'b', 'c'])
  expect(transactions()).toBe(1)
})

test('a write alone needs no transaction', async () => {
  const { insert, stored, transactions } = await open()
  await insert('a')
  expect(await stored()).toEqual(['a'])
  expect(transactions()).toBe(0)
})

test('a write that fails does not undo the others of its group', async () => {
  const { insert, stored } = await open()
  const results = await Promise.allSettled([insert('a'), insert('b'), insert('a'), insert('c')])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(await stored()).toEqual(['a', 'b', 'c'])
})

test('many writes are several transactions, so that other work goes on between them', async () => {
  const { insert, stored, transactions } = await open()
  const names = Array.from({ length: 200 }, (_, at) => `n${String(at).padStart(3, '0')}`)
  await Promise.all(names.map(insert))
  expect(await stored()).toEqual(names)
  expect(transactions()).toBeGreaterThan(2)
})

test('what is read after a write of that record has been asked for sees it', async () => {
  const { writes, insert, stored } = await open()
  const inserting = insert('a')
  writes.beginEarly('b') // of another record: the write goes on waiting for others
  expect(await stored()).toEqual([])
  const again = insert('b')
  writes.beginEarly('b')
  expect(await stored()).toEqual(['a', 'b'])
  await Promise.all([inserting, again])
})

/** PostgreSQL as far as it matters here: statements run side by side, each until `end` is called. */
const openSideBySide = () => {
  const ends: (() => void)[] = []
  let [running, most, transactions, longest] = [0, 0, 0, 0]
  const busy = async <T>(work: () => Promise<T>): Promise<T> => {
    most = Math.max(most, ++running)
    await new Promise<void>(resolve => ends.push(resolve))
    running--
    return work()
  }
  const sql = { dialect: POSTGRES } as Sql
  const database = {
    ...sql,
    run: () => busy(async () => 1),
    transaction: (work: (sql: Sql) => Promise<unknown>) => {
      transactions++
      let statements = 0
      const run = async () => {
        longest = Math.max(longest, ++statements)
        return 1
      }
      return busy(() => work({ ...sql, run }))
    },
  } as unknown as SqlDatabase
  const writes = new GroupedWrites(database, new StoreContact('test', SILENT))
  const settle = async (done: Promise<unknown>): Promise<void> => {
    let isDone = false
    void done.then(() => (isDone = true))
    while (!isDone) {
      for (const end of ends.splice(0)) end()
      await new Promise(setImmediate)
    }
  }
  const write = (at: number) => writes.run(`id ${at}`, sql => sql.run('UPDATE', at))
  const remove = (at: number) =>
    writes.run(
      `id ${at}`,
      async sql => {
        for (const table of ['record', 'event', 'inbox']) await sql.run(`DELETE FROM ${table}`, at)
      },
      true,
    )
  const counts = { running: () => running, most: () => most, transactions: () => transactions, longest: () => longest }
  return { writes, write, remove, settle, ...counts }
}

test('PostgreSQL gets writes at once while few run, and thousands in few transactions on few connections', async () => {
  const { write, settle, running, most, transactions } = openSideBySide()
  const first = [write(0), write(1)]
  expect([running(), transactions()]).toEqual([2, 0]) // neither waits for the other
  const all = Promise.all([...first, ...Array.from({ length: 5000 }, (_, at) => write(at + 2))])
  await settle(all)
  expect(await all).toHaveLength(5002)
  expect(most()).toBe(4) // a heartbeat finds a free connection
  expect(transactions()).toBeLessThan(400)
})

test('a transaction in PostgreSQL has few statements, each of which takes the time of the network', async () => {
  const { write, remove, settle, longest, transactions } = openSideBySide()
  const all = Array.from({ length: 300 }, (_, at) => (at % 3 === 0 ? write(at) : remove(at)))
  await settle(Promise.all(all))
  expect(longest()).toBeLessThanOrEqual(16)
  expect(transactions()).toBeLessThan(100) // of 700 statements
})

test('a flush waits for all writes of before, also for those that wait for a connection', async () => {
  const { writes, write, settle, running } = openSideBySide()
  const before = Promise.all(Array.from({ length: 300 }, (_, at) => write(at)))
  const done: string[] = []
  void before.then(() => done.push('writes'))
  const flushed = writes.flush().then(() => done.push('flush'))
  expect(running()).toBe(4)
  await settle(flushed)
  expect(done).toEqual(['writes', 'flush'])
})
