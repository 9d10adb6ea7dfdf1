import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { loadDriver, runOnThread, StatementThread } from './sqlite-driver.ts'

const folder = mkdtempSync(join(tmpdir(), 'dragoman-thread-'))
afterAll(() => rmSync(folder, { recursive: true }))

const { name: driver, Class } = await loadDriver()

const createTable = (file: string): string => {
  const path = join(folder, file)
  const connection = new Class(path, {})
  connection.exec('CREATE TABLE t (thread INTEGER, value TEXT)')
  connection.close()
  return path
}

const insert = (path: string, value: string) => ({
  path,
  sql: 'INSERT INTO t (value) VALUES (?)',
  values: [value],
  lockTimeoutMs: 1000,
})

const valuesIn = (path: string): unknown[] => {
  const connection = new Class(path, {})
  const rows = connection.prepare('SELECT value FROM t ORDER BY rowid').all() as { value: string }[]
  connection.close()
  return rows.map(({ value }) => value)
}

test('runs statements one after the other, also after one that fails and after its end', async () => {
  const path = createTable('many.db')
  const thread = new StatementThread(driver, 60_000)
  await thread.run(insert(path, 'a'))
  await expect(thread.run({ ...insert(path, 'x'), sql: 'INSERT INTO missing VALUES (?)' })).rejects.toThrow(/missing/)
  await thread.run(insert(path, 'b'))
  thread.end()
  await thread.run(insert(path, 'c'))
  const last = thread.run(insert(path, 'd'))
  thread.end() // does not stop the statement
  await last
  expect(valuesIn(path)).toEqual(['a', 'b', 'c', 'd'])
})

test('ends when it is unused, and starts again', async () => {
  const path = createTable('idle.db')
  const thread = new StatementThread(driver, 20)
  await thread.run(insert(path, 'a'))
  expect(thread.isStarted).toBe(true)
  await expect.poll(() => thread.isStarted).toBe(false)
  await thread.run(insert(path, 'b'))
  thread.end()
  expect(valuesIn(path)).toEqual(['a', 'b'])
})

test('a thread for one statement ends with it', async () => {
  const path = createTable('one.db')
  await runOnThread(driver, insert(path, 'a'))
  expect(valuesIn(path)).toEqual(['a'])
})
