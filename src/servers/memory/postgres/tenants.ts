import { createHash } from 'node:crypto'
import type { MemoryStore, MemoryStores } from '../store.ts'
import { inWords } from './failures.ts'
import { type MemoryDatabase, openMemoryDatabase, type PostgresOpenOptions } from './open.ts'
import { createPostgresStore } from './store.ts'

export interface PostgresStoresOptions extends PostgresOpenOptions {
  /** How many tenants are kept in mind at once; the database keeps them all. */
  readonly mostOpen?: number
  readonly now?: () => number
}

const MOST_OPEN = 1_000

/** What stands for a tenant in every key: its name where that will do, otherwise a digest no name can be mistaken for. */
const keyOf = (tenant: string): string =>
  /^[\x20-\x3c\x3e-\x7e][\x20-\x7e]{0,199}$/.test(tenant)
    ? tenant
    : `=${createHash('sha256').update(tenant).digest('hex')}`

const enrol = async ({ postgres, beginAs }: MemoryDatabase, tenant: string, now: () => number): Promise<void> => {
  const sql = 'INSERT INTO tenant (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING'
  await postgres.transaction(db => db.run(sql, JSON.stringify(tenant), now()), { begin: beginAs(keyOf(tenant)) })
}

/** Every tenant in one PostgreSQL, kept apart by row-level security. Connects when first used. */
export const openPostgresStores = (options: PostgresStoresOptions): MemoryStores => {
  const { mostOpen = MOST_OPEN, now = Date.now } = options
  const stores = new Map<string, Promise<MemoryStore>>() // the least lately used first
  let opening: Promise<MemoryDatabase> | undefined
  let isClosed = false

  const database = (): Promise<MemoryDatabase> => {
    opening ??= openMemoryDatabase(options).catch((error: unknown) => {
      opening = undefined // It is tried afresh next time.
      throw error
    })
    return opening
  }
  const open = async (tenant: string): Promise<MemoryStore> => {
    const db = await database()
    try {
      await enrol(db, tenant, now)
    } catch (error) {
      throw inWords(error, db.postgres.place)
    }
    return createPostgresStore(db, keyOf(tenant), now)
  }
  const storeOf = (tenant: string): Promise<MemoryStore> => {
    const store = stores.get(tenant) ?? open(tenant)
    stores.delete(tenant)
    stores.set(tenant, store)
    store.catch(() => stores.get(tenant) === store && stores.delete(tenant))
    // A store is nothing but a name and its listeners, so one in use may be let go of.
    for (const [oldest] of stores) if (stores.size > mostOpen) stores.delete(oldest)
    return store
  }
  return {
    with: async (tenant, use) => {
      if (isClosed) throw new Error('The memories are closed.')
      return use(await storeOf(tenant))
    },
    tenants: async () => {
      const { postgres, schema } = await database()
      const sql = `SELECT name FROM "${schema.replaceAll('"', '""')}".tenant ORDER BY tenant`
      return (await postgres.transaction(db => db.all<{ name: string }>(sql), { readOnly: true })).map(
        row => JSON.parse(row.name) as string,
      )
    },
    close: async () => {
      isClosed = true
      const open = await opening?.catch(() => undefined)
      await open?.close()
    },
  }
}
