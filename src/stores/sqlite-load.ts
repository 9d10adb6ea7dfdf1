import type { SqlValue } from './sqlite.ts'

/** A prepared statement, as both implementations have it. */
export interface Statement {
  all(...values: readonly SqlValue[]): unknown[]
  get(...values: readonly SqlValue[]): unknown
  run(...values: readonly SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  iterate(...values: readonly SqlValue[]): IterableIterator<unknown>
}

/** A connection, as both implementations have it. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

type DatabaseClass = new (path: string, options: { readOnly?: boolean; timeout?: number }) => Database

const isSqliteWarning = (warning: unknown): boolean => /SQLite/.test(String(warning))

/** Node prints a warning when its own SQLite is loaded for the first time; it would be our users' first line. */
const withoutWarning = <Result>(load: () => Result): Result => {
  const warn = process.emitWarning
  process.emitWarning = ((...words: Parameters<typeof warn>) => {
    if (!isSqliteWarning(words[0])) warn.apply(process, words)
  }) as typeof warn
  try {
    return load()
  } finally {
    process.emitWarning = warn
  }
}

const hasFullText = (Class: DatabaseClass): boolean => {
  const database = new Class(':memory:', {})
  try {
    const row = database.prepare("SELECT sqlite_compileoption_used('ENABLE_FTS5') AS has").get() as { has: number }
    return row.has === 1
  } finally {
    database.close()
  }
}

const builtIn = (): DatabaseClass | undefined => {
  const load = (process as { getBuiltinModule?: (id: string) => unknown }).getBuiltinModule
  const module = withoutWarning(() => load?.('node:sqlite')) as { DatabaseSync: DatabaseClass } | undefined
  return module && hasFullText(module.DatabaseSync) ? module.DatabaseSync : undefined
}

/** Node's own SQLite where it has full-text search, and the bundled one elsewhere. */
export const loadDriver = async (): Promise<{ name: string; Class: DatabaseClass }> => {
  const own = builtIn()
  if (own) return { name: 'node:sqlite', Class: own }
  const { DatabaseSync } = await import('@photostructure/sqlite')
  return { name: '@photostructure/sqlite', Class: DatabaseSync as unknown as DatabaseClass }
}
