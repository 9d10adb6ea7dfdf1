import { openPostgres } from '../../src/stores/postgres.ts'
import { listenOnPostgres } from '../../src/stores/state/postgres-wake.ts'
import { preparePostgres } from '../../src/stores/state/prepare-state.ts'
import type { StateStore } from '../../src/stores/state/state-store.ts'
import { createSqlCluster } from './sql-cluster.ts'

/** Joins the replicas on a PostgreSQL; one that is killed counts as dead after four seconds, for a busy machine. */
export const joinPostgres = async (url: string): Promise<StateStore> => {
  const cluster = await createSqlCluster({
    open: async () => openPostgres({ url, maxConnections: 4 }),
    prepare: preparePostgres,
    wake: database => listenOnPostgres(url, database),
  })
  return cluster.join(undefined, { beatMs: 250, leaseMs: 4000 })
}
