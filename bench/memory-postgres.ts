import { randomUUID } from 'node:crypto'
import type { Memory, Store } from './memory-program.ts'

interface Database {
  readonly postgres: { exec(sql: string): Promise<void> }
  close(): Promise<void>
}

const load = async <Module>(path: string): Promise<Module> =>
  (await import(new URL(`../../dist/${path}`, import.meta.url).href)) as Module

/** The same memory over a PostgreSQL database, in a schema that is dropped when `use` is done; every path is a tenant. */
export const onPostgres = async <Result>(
  memory: Memory,
  url: string,
  use: (memory: Memory) => Promise<Result>,
): Promise<Result> => {
  const { openMemoryDatabase } = await load<{
    openMemoryDatabase(options: { url: string; schema: string }): Promise<Database>
  }>('servers/memory/store/postgres-database.js')
  const { createPostgresEngine } = await load<{
    createPostgresEngine(database: Database, tenant: string): unknown
  }>('servers/memory/store/postgres-engine.js')
  const { createMemoryStore } = await load<{ createMemoryStore(engine: unknown): Store }>(
    'servers/memory/store/memory-store.js',
  )
  const schema = `bench_${randomUUID().slice(0, 8)}`
  const database = await openMemoryDatabase({ url, schema })
  try {
    return await use({ ...memory, open: async path => createMemoryStore(createPostgresEngine(database, path)) })
  } finally {
    await database.postgres.exec(`DROP SCHEMA ${schema} CASCADE`)
    await database.postgres.exec(`DROP ROLE ${schema}`)
    await database.close()
  }
}
