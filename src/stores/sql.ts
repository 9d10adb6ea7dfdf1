import type { Dialect } from './dialect.ts'

/** A value of a statement's parameter; a list is for `dialect.inList`. */
export type SqlValue = string | number | boolean | null | Uint8Array | readonly (string | number | null)[]

/** One row of a result, by column name. */
export type SqlRow = Readonly<Record<string, string | number | null | Uint8Array>>

/** Why a database rejected a statement, as far as a caller can act on it. */
export type SqlFailure =
  | 'conflict' // two transactions met; a retry will do
  | 'busy' // another process or transaction held a lock for too long
  | 'full'
  | 'damaged'
  | 'foreign' // the file is no database
  | 'readonly'
  | 'unreachable'
  | 'unsure' // the connection was lost during COMMIT
  | 'denied'
  | 'constraint'
  | 'limit' // for example a key too long for an index
  | 'other'

/** An error of a database or of the connection to it. */
export class SqlError extends Error {
  readonly kind: SqlFailure
  readonly state: string | undefined // SQLSTATE

  constructor(kind: SqlFailure, message: string, options?: ErrorOptions & { readonly state?: string | undefined }) {
    super(message, options)
    this.name = 'SqlError'
    this.kind = kind
    this.state = options?.state
  }
}

/** Whether an error is of one of these kinds. */
export const isSqlFailure = (error: unknown, ...kinds: readonly SqlFailure[]): error is SqlError =>
  error instanceof SqlError && kinds.includes(error.kind)

/** How `insertAll` inserts rows; a constant, because drivers cache the statement by the object. */
export interface InsertTarget {
  readonly table: string
  /** The columns in the order of a row's values. */
  readonly columns: Readonly<Record<string, 'integer' | 'text'>>
  /** Whether rows that are there already are skipped. */
  readonly ignoresConflicts?: boolean
  /** Whether the table has a column `id` whose new values are returned, in the order of the rows. */
  readonly returnsIds?: boolean
}

/** Statements on one connection; values replace `?` in their order, or `?1`, `?2` by number. */
export interface Sql {
  readonly dialect: Dialect
  all<Row = SqlRow>(sql: string, ...values: readonly SqlValue[]): Promise<Row[]>
  get<Row = SqlRow>(sql: string, ...values: readonly SqlValue[]): Promise<Row | undefined>
  /** Returns how many rows changed. */
  run(sql: string, ...values: readonly SqlValue[]): Promise<number>
  /** Inserts one row into a table with a column `id`; returns its id, or undefined if `ON CONFLICT` skipped it. */
  insert(sql: string, ...values: readonly SqlValue[]): Promise<number | undefined>
  /** Inserts many rows in one round trip. */
  insertAll(into: InsertTarget, rows: readonly (readonly (string | number | null)[])[]): Promise<number[]>
  /** Runs one statement with each list of values, in order. */
  runEach(sql: string, rows: readonly (readonly SqlValue[])[]): Promise<void>
  /** Runs several statements without values. */
  exec(sql: string): Promise<void>
}

export interface TransactionOptions {
  readonly readOnly?: boolean
  /** Statements of the beginning, like SET LOCAL; they cost no round trip of their own. */
  readonly begin?: string | undefined
}

/** An unchanging view of a database that stays open until it is closed. */
export interface SqlSnapshot {
  readonly sql: Sql
  close(): Promise<void>
}

/** A database. Its own statements run outside of transactions, each by itself. */
export interface SqlDatabase extends Sql {
  /** The path, or host and database; never the password. */
  readonly location: string
  /** The library underneath. */
  readonly driver: string
  /**
   * Runs `work` as one transaction that is durable when this resolves. It may run again after a conflict, so it must have
   * no other effects; and it must use only the `sql` it is given, because SQLite has one connection for all.
   */
  transaction<Result>(work: (sql: Sql) => Promise<Result>, options?: TransactionOptions): Promise<Result>
  snapshot(begin?: string): Promise<SqlSnapshot>
  /** Runs one long statement, like VACUUM, outside of transactions and without blocking the process. */
  runLong(sql: string, ...values: readonly SqlValue[]): Promise<void>
  close(): Promise<void>
}

/** The id of a row that must have been inserted. */
export const idOf = (id: number | undefined): number => {
  if (id === undefined) throw new Error('no row was inserted')
  return id
}
