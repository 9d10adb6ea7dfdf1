import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Sql, SqlDatabase } from '../../stores/sql.ts'
import { openSqlite } from '../../stores/sqlite.ts'
import { createMemoryStore } from './store/memory-store.ts'
import {
  explainDatabaseError,
  type MemoryDatabase,
  type MemoryDatabaseOptions,
  openMemoryDatabase,
} from './store/postgres-database.ts'
import { createPostgresEngine } from './store/postgres-engine.ts'
import { createSqliteEngine } from './store/sqlite-engine.ts'
import { openMemoryFile } from './store/sqlite-file.ts'
import { type MemoryStore, type MemoryStores, StoreError } from './store.ts'

/** Where memories are stored: in the tenants' files, or in a PostgreSQL database. */
export interface StorePlace {
  readonly folder: string
  readonly database?: string | undefined // URL
}

/** The memories of all tenants. Nothing is opened yet. */
export const openStores = ({ folder, database }: StorePlace): MemoryStores =>
  database === undefined ? openSqliteStores({ folder }) : openPostgresStores({ url: database })

export interface SqliteStoreOptions {
  readonly path: string
  /** The owner; a file of another tenant is rejected. */
  readonly tenant?: string
  readonly now?: () => number
}

/** Opens one tenant's memory in a SQLite file. */
export const openSqliteStore = async ({ path, tenant, now }: SqliteStoreOptions): Promise<MemoryStore> => {
  const db = await openMemoryFile(path)
  if (tenant !== undefined) await claimFile(db, tenant)
  return createMemoryStore(createSqliteEngine(db), now)
}

const readOwner = async (db: Sql): Promise<string | undefined> => {
  const row = await db.get<{ value: string }>("SELECT value FROM meta WHERE key = 'tenant'")
  return row && (JSON.parse(row.value) as string)
}

/** Writes the tenant's name into a new file; rejects a file of another tenant. */
const claimFile = async (db: SqlDatabase, tenant: string): Promise<void> => {
  if ((await readOwner(db)) === undefined)
    await db.run("INSERT INTO meta (key, value) VALUES ('tenant', ?) ON CONFLICT DO NOTHING", JSON.stringify(tenant))
  if ((await readOwner(db)) === tenant) return
  await db.close()
  throw new StoreError('foreign', `${db.location} is the memory of another tenant. Put it back where it came from.`)
}

/** The tenant whose file it is; undefined if it cannot be read. */
const readOwnerOf = async (path: string): Promise<string | undefined> => {
  try {
    const db = await openSqlite(path, { readOnly: true })
    try {
      return await readOwner(db)
    } finally {
      await db.close()
    }
  } catch {
    return undefined
  }
}

const FILE_END = '.memory.db'

/** A tenant's file name: readable, with a digest so that no two tenants share a file. */
export const fileOf = (tenant: string): string => {
  const readable = tenant
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40)
  const digest = createHash('sha256').update(tenant).digest('hex').slice(0, 32)
  return `${readable === '' ? 'tenant' : readable}-${digest}${FILE_END}`
}

export interface SqliteStoresOptions {
  /** The folder of the tenants' files. */
  readonly folder: string
  /** How many files are open at once; further calls wait. */
  readonly mostOpen?: number
  /** How long a file stays open after its last use. */
  readonly idleMs?: number
  readonly now?: () => number
}

const MOST_OPEN_FILES = 64
const IDLE_MS = 10 * 60_000

interface OpenFile {
  readonly store: Promise<MemoryStore>
  users: number
  timer: NodeJS.Timeout | undefined
  /** It could not be opened, or was deleted or replaced: the next call opens it again. */
  isBad: boolean
}

/** One SQLite file per tenant in a folder: opened at first use, closed when idle. */
export const openSqliteStores = (options: SqliteStoresOptions): MemoryStores => {
  const { folder, mostOpen = MOST_OPEN_FILES, idleMs = IDLE_MS } = options
  const files = new Map<string, OpenFile>() // the least recently used first
  const closing = new Map<string, Promise<void>>()
  const waiting: (() => void)[] = []
  const owners = new Map<string, string | undefined>() // by file name
  let isClosed = false

  const open = async (tenant: string): Promise<MemoryStore> => {
    await closing.get(tenant) // What closes a file also releases the locks of a connection opened meanwhile.
    return openSqliteStore({ path: join(folder, fileOf(tenant)), tenant, ...(options.now && { now: options.now }) })
  }
  const wakeAll = (): void => {
    for (const wake of waiting.splice(0)) wake()
  }
  const close = async (tenant: string, file: OpenFile): Promise<void> => {
    clearTimeout(file.timer)
    if (files.get(tenant) === file) files.delete(tenant)
    const closed = file.store.then(store => store.close()).catch(() => undefined)
    closing.set(tenant, closed)
    await closed
    if (closing.get(tenant) === closed) closing.delete(tenant)
    wakeAll()
  }
  const evict = async (): Promise<void> => {
    const idle = [...files].find(([, file]) => file.users === 0)
    if (idle) await close(...idle)
    else await new Promise<void>(resolve => waiting.push(resolve))
  }
  const acquire = async (tenant: string): Promise<OpenFile> => {
    while (!isClosed && !files.has(tenant) && files.size >= mostOpen) await evict()
    if (isClosed) throw new StoreError('closed', 'The memories are closed.')
    const file = files.get(tenant) ?? { store: open(tenant), users: 0, timer: undefined, isBad: false }
    clearTimeout(file.timer)
    file.users++
    files.delete(tenant)
    files.set(tenant, file)
    return file
  }
  const release = (tenant: string, file: OpenFile): void => {
    file.users--
    if (file.users > 0) return
    if (file.isBad || isClosed) return void close(tenant, file)
    file.timer = setTimeout(() => void close(tenant, file), idleMs).unref()
    wakeAll()
  }
  return {
    with: async (tenant, use) => {
      const file = await acquire(tenant)
      try {
        return await use(await file.store)
      } catch (error) {
        file.isBad ||= (await hasFailed(file.store)) || (error instanceof StoreError && error.kind === 'damaged')
        throw error
      } finally {
        release(tenant, file)
      }
    },
    tenants: async () => {
      const names = (await readdir(folder).catch(() => [])).filter(name => name.endsWith(FILE_END)).toSorted()
      for (const name of names) if (!owners.get(name)) owners.set(name, await readOwnerOf(join(folder, name)))
      return names.flatMap(name => owners.get(name) ?? [])
    },
    close: async () => {
      isClosed = true
      await Promise.all([...files].map(([tenant, file]) => close(tenant, file)))
    },
  }
}

const hasFailed = (opening: Promise<MemoryStore>): Promise<boolean> =>
  opening.then(
    () => false,
    () => true,
  )

export interface PostgresStoresOptions extends MemoryDatabaseOptions {
  readonly now?: () => number
}

const MOST_REMEMBERED = 1_000

/** A tenant's key in every row: its name if that is short ASCII, otherwise a digest that no name equals. */
const keyOf = (tenant: string): string =>
  /^[\x20-\x3c\x3e-\x7e][\x20-\x7e]{0,199}$/.test(tenant)
    ? tenant
    : `=${createHash('sha256').update(tenant).digest('hex')}`

/** All tenants in one PostgreSQL database, separated by row-level security. Connects at first use. */
export const openPostgresStores = (options: PostgresStoresOptions): MemoryStores => {
  const { now = Date.now } = options
  const stores = new Map<string, Promise<MemoryStore>>() // the least recently used first
  let opening: Promise<MemoryDatabase> | undefined
  let isClosed = false

  const connect = (): Promise<MemoryDatabase> => {
    opening ??= openMemoryDatabase(options).catch((error: unknown) => {
      opening = undefined // The next call tries again.
      throw error
    })
    return opening
  }
  const open = async (tenant: string): Promise<MemoryStore> => {
    const database = await connect()
    const key = keyOf(tenant)
    const sql = 'INSERT INTO tenant (name, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING'
    try {
      await database.postgres.transaction(db => db.run(sql, JSON.stringify(tenant), now()), {
        begin: database.beginAs(key),
      })
    } catch (error) {
      throw explainDatabaseError(error, database.postgres.location)
    }
    return createMemoryStore(createPostgresEngine(database, key), now)
  }
  const storeOf = (tenant: string): Promise<MemoryStore> => {
    const store = stores.get(tenant) ?? open(tenant)
    stores.delete(tenant)
    stores.set(tenant, store)
    store.catch(() => stores.get(tenant) === store && stores.delete(tenant))
    // A store holds no connection, so one that is in use can be evicted.
    for (const [oldest] of stores) if (stores.size > MOST_REMEMBERED) stores.delete(oldest)
    return store
  }
  return {
    with: async (tenant, use) => {
      if (isClosed) throw new StoreError('closed', 'The memories are closed.')
      return use(await storeOf(tenant))
    },
    tenants: async () => {
      const { postgres, tables } = await connect()
      const table = tables.find(name => name.endsWith('.tenant'))
      const sql = `SELECT name FROM ${table} ORDER BY tenant`
      const rows = await postgres.transaction(db => db.all<{ name: string }>(sql), { readOnly: true })
      return rows.map(({ name }) => JSON.parse(name) as string)
    },
    close: async () => {
      isClosed = true
      const database = await opening?.catch(() => undefined)
      await database?.close()
    },
  }
}
