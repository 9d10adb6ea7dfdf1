import type { Sql, SqlDatabase } from '../../../stores/sql.ts'
import type { FactFilter, Groups, IndexKind, TextQuery } from '../store.ts'

/** A row to index: its texts in the order of the index's columns. */
export interface IndexedRow {
  readonly id: number
  readonly group: string
  readonly texts: readonly string[]
}

/** The full-text indexes, within one transaction. */
export interface TextIndex {
  put(kind: IndexKind, rows: readonly IndexedRow[]): Promise<void>
  /** Removes rows from an index; to be called before the rows themselves change. */
  remove(kind: IndexKind, ids: readonly number[]): Promise<void>
  /** Replaces an indexed row, whose old texts are given. */
  replace(kind: IndexKind, before: IndexedRow, after: IndexedRow): Promise<void>
  /** The ids that match best with their scores, the best first: BM25 with weighted columns. */
  best(
    kind: IndexKind,
    query: TextQuery,
    weights: readonly number[],
    filter?: FactFilter,
  ): Promise<ReadonlyMap<number, number>>
  /** Rows that contain every word of a name; `columns` are those of the table, which is called `r`. */
  containing<Row>(kind: 'doc' | 'fact', columns: string, name: string, groups: Groups): Promise<Row[]>
  /** Writes what is pending, at the end of a writing transaction. Returns how many rows were put. */
  flush(): Promise<number>
}

/** What is left of erased texts. */
export interface ErasureCheck {
  readonly checked: number // samples of the texts
  readonly gone: number
  readonly files: readonly string[]
  readonly clean: boolean
}

/** One tenant's database with what the memory store needs beyond SQL and what differs between the engines. */
export interface Engine {
  readonly database: SqlDatabase
  readonly schemaVersion: number
  /** Statements that begin a transaction of the tenant. */
  readonly begin?: string
  /** The columns of a unique key, after the tenant's if tables are shared. */
  key(columns: string): string
  createIndex(sql: Sql): TextIndex
  sizeOf(sql: Sql): Promise<number> // bytes
  /** Throws if the database cannot be used any more. */
  check(): void
  /** The error to throw instead of one of the database: a StoreError that says what to do. */
  explain(error: unknown): unknown
  /** Called after each transaction with the number of rows that it indexed. */
  onIndexed(rows: number): void
  /** Removes the bytes of deleted rows as far as the engine can, then searches for the texts they held. */
  purge(texts: readonly string[]): Promise<ErasureCheck>
  /** Writes a consistent copy to a new file; `lines` is an export. */
  copyTo(path: string, lines: () => AsyncIterable<string>): Promise<void>
  close(): Promise<void>
}
