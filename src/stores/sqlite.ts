import { setTimeout as delay } from 'node:timers/promises'
import { Semaphore } from '../std/semaphore.ts'
import { backoffMs } from '../std/time.ts'
import { SQLITE } from './dialect.ts'
import {
  type InsertTarget,
  isSqlFailure,
  type Sql,
  type SqlDatabase,
  SqlError,
  type SqlFailure,
  type SqlValue,
} from './sql.ts'
import { type Connection, loadDriver, runOnThread, type SqliteValue, type Statement } from './sqlite-driver.ts'

const FAILURES: Readonly<Record<number, SqlFailure>> = {
  5: 'busy',
  6: 'busy',
  8: 'readonly',
  10: 'unreachable',
  11: 'damaged',
  13: 'full',
  14: 'unreachable',
  19: 'constraint',
  26: 'foreign',
}

const classified = (error: unknown): unknown => {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return error
  // The low byte is the primary code; the rest says which lock or which write failed.
  return new SqlError(FAILURES[error.errcode & 0xff] ?? 'other', error.message, { cause: error })
}

const guarded = <Result>(work: () => Result): Result => {
  try {
    return work()
  } catch (error) {
    throw classified(error)
  }
}

export interface SqliteOptions {
  readonly readOnly?: boolean
  /** How long a statement waits for the locks of other processes. */
  readonly lockTimeoutMs?: number
}

const LOCK_TIMEOUT_MS = 10_000
// The driver blocks the process while it waits for a lock; so it waits briefly, and `retryWhileBusy` the rest.
const BLOCKING_WAIT_MS = 20
const BUSY_BACKOFF = { firstMs: 1, longestMs: 60 }

/** Retries `attempt` until no other process holds the lock it needs, at most for `timeoutMs`. */
export const retryWhileBusy = async <Result>(
  attempt: () => Promise<Result>,
  timeoutMs = LOCK_TIMEOUT_MS,
): Promise<Result> => {
  const end = performance.now() + timeoutMs
  for (let failures = 0; ; failures++) {
    try {
      return await attempt()
    } catch (error) {
      if (!isSqlFailure(error, 'busy') || performance.now() > end) throw error
    }
    await delay(backoffMs(BUSY_BACKOFF, failures))
  }
}

const isText = (value: unknown): value is string => typeof value === 'string'

const boundValue = (value: SqlValue): SqliteValue => {
  // The bundled driver silently ends a text at a zero byte.
  if (typeof value === 'string') return value.includes('\0') ? SQLITE.storedText(value) : value
  if (typeof value === 'boolean') return Number(value)
  // JSON would keep what a stored text cannot contain, and the two would differ.
  if (Array.isArray(value)) return JSON.stringify(value.map(item => (isText(item) ? SQLITE.storedText(item) : item)))
  return value as SqliteValue
}

const insertStatement = ({ table, columns, ignoresConflicts }: InsertTarget): string => {
  const names = Object.keys(columns)
  const sql = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`
  return ignoresConflicts ? `${sql} ON CONFLICT DO NOTHING` : sql
}

/** Statements on a connection, each prepared once; the caller sees to it that no other work interferes. */
const createSql = (connection: Connection, prepared: Map<string, Statement>): Sql => {
  const inserts = new WeakMap<InsertTarget, string>()
  const prepare = (sql: string): Statement => {
    const known = prepared.get(sql)
    if (known) return known
    const statement = connection.prepare(sql)
    prepared.set(sql, statement)
    return statement
  }
  const run = (sql: string, values: readonly SqlValue[]) => guarded(() => prepare(sql).run(...values.map(boundValue)))
  return {
    dialect: SQLITE,
    all: async <Row>(sql: string, ...values: readonly SqlValue[]) =>
      guarded(() => prepare(sql).all(...values.map(boundValue)) as Row[]),
    get: async <Row>(sql: string, ...values: readonly SqlValue[]) =>
      guarded(() => prepare(sql).get(...values.map(boundValue)) as Row | undefined),
    run: async (sql, ...values) => Number(run(sql, values).changes),
    insert: async (sql, ...values) => {
      const { changes, lastInsertRowid } = run(sql, values)
      return Number(changes) === 0 ? undefined : Number(lastInsertRowid)
    },
    insertAll: async (into, rows) => {
      const sql = inserts.get(into) ?? insertStatement(into)
      inserts.set(into, sql)
      return rows.map(row => Number(run(sql, row).lastInsertRowid))
    },
    runEach: async (sql, rows) =>
      guarded(() => {
        const statement = prepare(sql)
        for (const row of rows) statement.run(...row.map(boundValue))
      }),
    exec: async sql => guarded(() => connection.exec(sql)),
  }
}

const rollBack = (connection: Connection): void => {
  try {
    connection.exec('ROLLBACK')
  } catch {
    // A full disk has ended the transaction already.
  }
}

/** The bundled driver keeps the file open until its statements are collected, so the log is emptied before. */
const closeConnection = (connection: Connection): void => {
  try {
    connection.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // Another process uses the file; it empties the log when it closes.
  }
  connection.close()
}

/** The path of a database in memory, which only its own connection sees. */
export const IN_MEMORY = ':memory:'

/** Opens a database file, or creates it. Opening writes nothing. */
export const openSqlite = async (path: string, options: SqliteOptions = {}): Promise<SqlDatabase> => {
  const { readOnly = false, lockTimeoutMs = LOCK_TIMEOUT_MS } = options
  const { name: driver, Class } = await loadDriver()
  const connection = guarded(() => new Class(path, { readOnly, timeout: BLOCKING_WAIT_MS }))
  const prepared = new Map<string, Statement>()
  const sql = createSql(connection, prepared)
  // All work of this process shares the connection: one transaction or statement at a time, in order of arrival.
  const turn = new Semaphore(1)
  let longRunning: Promise<unknown> | undefined

  const exclusively = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const release = await turn.acquire()
    try {
      return await work()
    } finally {
      release()
    }
  }
  // The lock is released between attempts, so that reads go on while a write waits for another process.
  const alone = <Result>(work: () => Promise<Result>): Promise<Result> =>
    retryWhileBusy(() => exclusively(work), lockTimeoutMs)
  const inTransaction = async <Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> => {
    await sql.run('BEGIN IMMEDIATE')
    try {
      const result = await work(sql)
      await sql.run('COMMIT')
      return result
    } catch (error) {
      rollBack(connection)
      throw error
    }
  }
  const runLong = async (text: string, values: readonly SqlValue[]): Promise<void> => {
    if (path === IN_MEMORY) return void (await alone(() => sql.run(text, ...values)))
    try {
      await runOnThread(driver, { path, sql: text, values: values.map(boundValue), lockTimeoutMs })
    } catch (error) {
      throw classified(error)
    }
  }
  return {
    location: path,
    driver,
    dialect: SQLITE,
    all: (...args) => alone(() => sql.all(...args)),
    get: (...args) => alone(() => sql.get(...args)),
    run: (...args) => alone(() => sql.run(...args)),
    insert: (...args) => alone(() => sql.insert(...args)),
    insertAll: (...args) => alone(() => sql.insertAll(...args)),
    runEach: (...args) => alone(() => sql.runEach(...args)),
    exec: text => alone(() => sql.exec(text)),
    transaction: async (work, given = {}) => {
      // Without BEGIN each statement sees the latest commit of other processes, as in PostgreSQL.
      if (given.readOnly) return alone(() => work(sql))
      while (longRunning) await longRunning
      return alone(() => inTransaction(work))
    },
    snapshot: async () => {
      const reader = await openSqlite(path, { readOnly: true })
      try {
        await reader.exec('BEGIN; SELECT count(*) FROM sqlite_schema') // The first read fixes the moment.
      } catch (error) {
        await reader.close()
        throw error
      }
      const close = async (): Promise<void> => {
        await reader.exec('ROLLBACK') // An open view would keep the log from being emptied.
        await reader.close()
      }
      return { sql: reader, close }
    },
    runLong: (text, ...values) => {
      const run = Promise.resolve(longRunning).then(() => runLong(text, values))
      const settled = run
        .catch(() => undefined)
        .then(() => {
          if (longRunning === settled) longRunning = undefined
        })
      longRunning = settled
      return run
    },
    close: () =>
      exclusively(async () => {
        prepared.clear()
        closeConnection(connection)
      }),
  }
}
