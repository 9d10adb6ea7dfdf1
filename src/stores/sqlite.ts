import { setTimeout as delay } from 'node:timers/promises'
import { runAside } from './sqlite-aside.ts'
import { type Database, loadDriver, type Statement } from './sqlite-load.ts'

/** A value SQLite takes or gives. */
export type SqlValue = string | number | bigint | null | Uint8Array

/** One row of a result, by column name. */
export type SqlRow = Readonly<Record<string, SqlValue>>

/** Why the database refused, as far as a caller can act on it. */
export type SqliteFailure =
  | 'busy'
  | 'full'
  | 'damaged'
  | 'foreign'
  | 'unreachable'
  | 'readonly'
  | 'constraint'
  | 'other'

const FAILURES: Readonly<Record<number, SqliteFailure>> = {
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

/** A refusal by SQLite with its primary result code put into words. */
export class SqliteError extends Error {
  readonly kind: SqliteFailure
  constructor(kind: SqliteFailure, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SqliteError'
    this.kind = kind
  }
}

const explained = (error: unknown): unknown => {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return error
  // The low byte is the primary code; the rest says which lock or which write.
  return new SqliteError(FAILURES[error.errcode & 0xff] ?? 'other', error.message, { cause: error })
}

const guarded = <Result>(work: () => Result): Result => {
  try {
    return work()
  } catch (error) {
    throw explained(error)
  }
}

/** An open database: prepared statements by their text, transactions, and waiting for other writers. */
export interface Sqlite {
  readonly path: string
  /** Which implementation is below. */
  readonly driver: string
  exec(sql: string): void
  all<Row = SqlRow>(sql: string, ...values: readonly SqlValue[]): Row[]
  get<Row = SqlRow>(sql: string, ...values: readonly SqlValue[]): Row | undefined
  run(sql: string, ...values: readonly SqlValue[]): { readonly changes: number; readonly id: number }
  each<Row = SqlRow>(sql: string, ...values: readonly SqlValue[]): IterableIterator<Row>
  /** Runs `work` as one transaction that is durable when this resolves; waits while another process writes. */
  write<Result>(work: () => Result): Promise<Result>
  /** Runs `work` on one unchanging view of the data. */
  read<Result>(work: () => Result): Promise<Result>
  /** Runs `work` again while another process holds the file; for what cannot be part of a transaction. */
  patiently<Result>(work: () => Result, patience?: number): Promise<Result>
  /** Runs one statement that takes long without holding up the process; writers wait for its end. */
  aside(sql: string, ...values: readonly SqlValue[]): Promise<void>
  close(): void
}

export interface SqliteOptions {
  readonly readOnly?: boolean
  /** How long a writer waits for other processes, in ms. */
  readonly patience?: number
}

let loading: ReturnType<typeof loadDriver> | undefined

const PATIENCE = 10_000
// The driver blocks the whole process while it waits, so it waits a moment only and we wait for the rest.
const BLOCKING_WAIT = 20
const LONGEST_PAUSE = 40

const isBusy = (error: unknown): boolean => error instanceof SqliteError && error.kind === 'busy'

/** Tries until the lock is free or patience is over; the pauses are uneven so that two waiters do not keep meeting. */
const untilFree = async <Result>(attempt: () => Result, patience: number): Promise<Result> => {
  const end = performance.now() + patience
  for (let pause = 1; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    try {
      return attempt()
    } catch (error) {
      if (!isBusy(error) || performance.now() > end) throw error
    }
    await delay(pause * (0.5 + Math.random()))
  }
}

const statementsOf = (database: Database) => {
  const prepared = new Map<string, Statement>()
  const statement = (sql: string): Statement => {
    const known = prepared.get(sql)
    if (known) return known
    const fresh = database.prepare(sql)
    prepared.set(sql, fresh)
    return fresh
  }
  return { statement, forget: () => prepared.clear() }
}

/** The bundled driver ends a text at a zero byte, silently; the sign for what cannot be shown takes its place. */
const whole = (value: SqlValue): SqlValue =>
  typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value

/** The bundled driver keeps the file until its statements are collected, so the log is emptied while we still can. */
const finish = (database: Database): void => {
  try {
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // Somebody else has the file; he will empty the log when he closes it.
  }
  database.close()
}

const rollBack = (database: Database): void => {
  try {
    database.exec('ROLLBACK')
  } catch {
    // A full disk ends the transaction by itself; there is nothing left to roll back then.
  }
}

/** The bundled driver lets go of a statement that nobody holds, even while its rows are read, and falls. */
const rowsOf = function* <Row>(
  statement: Statement,
  values: readonly SqlValue[],
  reading: Set<Statement>,
): Generator<Row, undefined> {
  reading.add(statement)
  try {
    yield* guarded(() => statement.iterate(...values)) as IterableIterator<Row>
  } finally {
    reading.delete(statement)
  }
}

const IN_MEMORY = ':memory:' // to be seen by its own connection only

const wrap = (database: Database, path: string, driver: string, patience: number): Sqlite => {
  const { statement, forget } = statementsOf(database)
  const reading = new Set<Statement>()
  // Begin and end in one go: what else this process does on the connection must not fall into the transaction.
  const transaction = <Result>(begin: string, work: () => Result): Result => {
    database.exec(begin)
    try {
      const result = work()
      database.exec('COMMIT')
      return result
    } catch (error) {
      rollBack(database)
      throw error
    }
  }
  const within = <Result>(begin: string, work: () => Result): Promise<Result> =>
    untilFree(() => guarded(() => transaction(begin, work)), patience)
  let others: Promise<unknown> = Promise.resolve() // what runs aside
  const aside = (sql: string, values: readonly SqlValue[]): Promise<void> => {
    const work = { driver, path, sql, values, patience }
    const run = others
      .then(() => (path === IN_MEMORY ? void statement(sql).run(...values) : runAside(work)))
      .catch(error => {
        throw explained(error)
      })
    others = run.catch(() => undefined)
    return run
  }
  return {
    path,
    driver,
    exec: sql => guarded(() => database.exec(sql)),
    all: <Row>(sql: string, ...values: readonly SqlValue[]) =>
      guarded(() => statement(sql).all(...values.map(whole)) as Row[]),
    get: <Row>(sql: string, ...values: readonly SqlValue[]) =>
      guarded(() => statement(sql).get(...values.map(whole)) as Row | undefined),
    run: (sql, ...values) =>
      guarded(() => {
        const { changes, lastInsertRowid } = statement(sql).run(...values.map(whole))
        return { changes: Number(changes), id: Number(lastInsertRowid) }
      }),
    // A fresh statement each: a cached one could be stepped by two readers at once.
    each: <Row>(sql: string, ...values: readonly SqlValue[]) =>
      rowsOf<Row>(
        guarded(() => database.prepare(sql)),
        values.map(whole),
        reading,
      ),
    write: async work => {
      await others
      return within('BEGIN IMMEDIATE', work)
    },
    read: work => within('BEGIN', work),
    patiently: (work, most = patience) => untilFree(() => guarded(work), most),
    aside: (sql, ...values) => aside(sql, values),
    close: () => {
      forget()
      finish(database)
    },
  }
}

/** Opens a database file, or makes one, with Node's own SQLite where it has full-text search and the bundled one elsewhere. Nothing is written by opening. */
export const openSqlite = async (path: string, options: SqliteOptions = {}): Promise<Sqlite> => {
  loading ??= loadDriver()
  const { name, Class } = await loading
  const database = guarded(() => new Class(path, { readOnly: options.readOnly ?? false, timeout: BLOCKING_WAIT }))
  return wrap(database, path, name, options.patience ?? PATIENCE)
}
