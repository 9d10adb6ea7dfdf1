import { openPostgres } from '../../src/stores/postgres.ts'
import { openSqlite } from '../../src/stores/sqlite.ts'
import { listenOnPostgres } from '../../src/stores/state/postgres-wake.ts'
import { preparePostgres, prepareSqlite } from '../../src/stores/state/prepare-state.ts'
import type { StateStore } from '../../src/stores/state/state-store.ts'
import { createLocalWake, createSqlCluster } from './sql-cluster.ts'

/** A replica that is killed counts as dead after four seconds, for a busy machine. */
const TIMES = { beatMs: 250, leaseMs: 4000 }

/** Joins the replicas on a database: the URL of a PostgreSQL, or the file of an SQLite. */
export const joinStore = async (location: string): Promise<StateStore> => {
  const cluster = await createSqlCluster(
    location.startsWith('postgres')
      ? {
          open: async () => openPostgres({ url: location, maxConnections: 4 }),
          prepare: preparePostgres,
          wake: database => listenOnPostgres(location, database),
        }
      : { open: () => openSqlite(location), prepare: prepareSqlite, wake: createLocalWake() },
  )
  return cluster.join(undefined, TIMES)
}
