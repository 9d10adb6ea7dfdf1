import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openSqlite } from '../../../stores/sqlite.ts'
import { type MemoryStore, type MemoryStores, StoreError } from '../store.ts'
import { openSqliteStore, ownerOf } from './store.ts'

export interface SqliteStoresOptions {
  /** The folder the tenants' files lie in. */
  readonly folder: string
  /** How many files are open at once; beyond, a call waits until one is free. */
  readonly mostOpen?: number
  /** How long a file stays open after its last use, in ms. */
  readonly idleMs?: number
  readonly now?: () => number
}

const MOST_OPEN = 64
const IDLE_MS = 10 * 60_000
const END = '.memory.db'

/** A tenant's file: readable at the front, and with a digest so that no two tenants ever share one. */
export const fileOf = (tenant: string): string => {
  const readable = tenant
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 40)
  const digest = createHash('sha256').update(tenant).digest('hex').slice(0, 32)
  return `${readable === '' ? 'tenant' : readable}-${digest}${END}`
}

interface Slot {
  readonly store: Promise<MemoryStore>
  users: number
  timer: NodeJS.Timeout | undefined
  /** It could not be opened, or is no longer the file it was: to be opened afresh. */
  isBad: boolean
}

/** One SQLite file per tenant in a folder: opened when first used, closed when idle. */
export const openSqliteStores = (options: SqliteStoresOptions): MemoryStores => {
  const { folder, mostOpen = MOST_OPEN, idleMs = IDLE_MS } = options
  const slots = new Map<string, Slot>() // the least lately used first
  const waiting: (() => void)[] = []
  const owners = new Map<string, string | undefined>() // of files, once looked up
  let isClosed = false

  const open = (tenant: string): Promise<MemoryStore> =>
    openSqliteStore({ path: join(folder, fileOf(tenant)), tenant, ...(options.now && { now: options.now }) })
  const shut = async (tenant: string, slot: Slot): Promise<void> => {
    clearTimeout(slot.timer)
    if (slots.get(tenant) === slot) slots.delete(tenant)
    await slot.store.then(store => store.close()).catch(() => undefined)
    wakeAll()
  }
  const wakeAll = (): void => {
    for (const wake of waiting.splice(0)) wake()
  }
  const idle = (): [string, Slot] | undefined => [...slots].find(([, slot]) => slot.users === 0)
  const makeRoom = async (): Promise<void> => {
    const free = idle()
    if (free) await shut(...free)
    else await new Promise<void>(resolve => waiting.push(resolve))
  }
  const take = async (tenant: string): Promise<Slot> => {
    while (!isClosed && !slots.has(tenant) && slots.size >= mostOpen) await makeRoom()
    if (isClosed) throw new StoreError('closed', 'The memories are closed.')
    const slot = slots.get(tenant) ?? { store: open(tenant), users: 0, timer: undefined, isBad: false }
    clearTimeout(slot.timer)
    slot.users++
    slots.delete(tenant)
    slots.set(tenant, slot)
    return slot
  }
  const release = (tenant: string, slot: Slot): void => {
    slot.users--
    if (slot.users > 0) return
    if (slot.isBad || isClosed) return void shut(tenant, slot)
    slot.timer = setTimeout(() => void shut(tenant, slot), idleMs).unref()
    wakeAll()
  }
  return {
    with: async (tenant, use) => {
      const slot = await take(tenant)
      try {
        return await use(await slot.store)
      } catch (error) {
        slot.isBad ||= (await hasFailed(slot)) || (error instanceof StoreError && error.kind === 'damaged')
        throw error
      } finally {
        release(tenant, slot)
      }
    },
    tenants: async () => {
      const files = (await readdir(folder).catch(() => [])).filter(file => file.endsWith(END)).toSorted()
      for (const file of files) if (!owners.get(file)) owners.set(file, await tenantIn(join(folder, file)))
      return files.flatMap(file => owners.get(file) ?? [])
    },
    close: async () => {
      isClosed = true
      await Promise.all([...slots].map(([tenant, slot]) => shut(tenant, slot)))
    },
  }
}

const hasFailed = (slot: Slot): Promise<boolean> =>
  slot.store.then(
    () => false,
    () => true,
  )

/** Whose file it is; one that cannot be read is nobody's. */
const tenantIn = async (path: string): Promise<string | undefined> => {
  try {
    const db = await openSqlite(path, { readOnly: true })
    try {
      return ownerOf(db)
    } finally {
      db.close()
    }
  } catch {
    return undefined
  }
}
