import type { Sql, SqlDatabase } from './sql.ts'

/** How a database stores the version of its schema: how many migrations it has run. */
export interface SchemaVersion {
  read(sql: Sql): Promise<number>
  write(sql: Sql, version: number): Promise<void>
  /** Keeps other processes from migrating until the transaction ends, if a transaction alone does not. */
  lock?(sql: Sql): Promise<void>
}

/**
 * Brings a schema up to date: each migration takes the version before it to the next, as one transaction.
 * Several processes may do this at once; each migration runs once.
 */
export const migrate = async (
  database: SqlDatabase,
  migrations: readonly string[],
  version: SchemaVersion,
  begin?: string,
): Promise<void> => {
  const runNext = async (sql: Sql): Promise<void> => {
    await version.lock?.(sql)
    const known = await version.read(sql)
    const migration = migrations[known]
    if (migration === undefined) return // Another process has run it meanwhile.
    await sql.exec(migration)
    await version.write(sql, known + 1)
  }
  while ((await version.read(database)) < migrations.length) await database.transaction(runNext, { begin })
}
