import { openPostgresStores } from './postgres/tenants.ts'
import { openSqliteStores } from './sqlite/tenants.ts'
import type { MemoryStores } from './store.ts'

/** Where memories rest. */
export interface StorePlace {
  readonly folder: string // of the tenants' files
  readonly database?: string | undefined // a PostgreSQL instead
}

/** The memories of all tenants, in files or in a database; nothing is opened yet. */
export const openStores = ({ folder, database }: StorePlace): MemoryStores =>
  database === undefined ? openSqliteStores({ folder }) : openPostgresStores({ url: database })
