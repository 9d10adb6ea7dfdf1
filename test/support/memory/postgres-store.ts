import { randomUUID } from 'node:crypto'
import { inject, onTestFinished } from 'vitest'
import { openPostgresStores } from '../../../src/servers/memory/open-stores.ts'
import { createMemoryStore } from '../../../src/servers/memory/store/memory-store.ts'
import { openMemoryDatabase } from '../../../src/servers/memory/store/postgres-database.ts'
import { createPostgresEngine } from '../../../src/servers/memory/store/postgres-engine.ts'
import type { MemoryStore, MemoryStores } from '../../../src/servers/memory/store.ts'
import { identifier, openPostgres } from '../../../src/stores/postgres.ts'
import '../postgres-setup.ts'

/** The PostgreSQL of this run. */
export const serverUrl = (): string => {
  const url = inject('postgresUrl')
  if (url === undefined) throw new Error('There is no PostgreSQL for this test')
  return url
}

/** The name of a schema of its own, which goes with its role when the test is over. */
export const temporarySchema = (): string => {
  const schema = `test_${randomUUID().replaceAll('-', '').slice(0, 12)}`
  onTestFinished(async () => {
    const postgres = openPostgres({ url: serverUrl() })
    const name = identifier(schema)
    await postgres.exec(`DROP SCHEMA IF EXISTS ${name} CASCADE`)
    await postgres.exec(`DROP ROLE IF EXISTS ${name}`)
    await postgres.close()
  })
  return schema
}

/** The memories of a database of their own. */
export const temporaryStores = async (
  schema = temporarySchema(),
): Promise<MemoryStores & { readonly schema: string }> => {
  const stores = openPostgresStores({ url: serverUrl(), schema })
  onTestFinished(() => stores.close())
  return { ...stores, schema }
}

/** One tenant's memory in a schema of its own, where row ids begin with 1. */
export const temporaryStore = async (
  now: () => number = Date.now,
): Promise<MemoryStore & { readonly path: string }> => {
  const schema = temporarySchema()
  const database = await openMemoryDatabase({ url: serverUrl(), schema })
  onTestFinished(() => database.close())
  return { ...createMemoryStore(createPostgresEngine(database, 'test'), now), path: schema }
}
