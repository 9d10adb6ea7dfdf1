import type { SqlDatabase } from '../../src/stores/sql.ts'
import { deriveStoreKeys } from '../../src/stores/state/secret.ts'
import { SqlState, type SqlStateOptions } from '../../src/stores/state/sql-state.ts'
import { stateTables } from '../../src/stores/state/state-schema.ts'
import type { Wake } from '../../src/stores/state/wake.ts'
import { SILENT } from '../../src/telemetry/log.ts'
import type { StateCluster } from './state-contract.ts'

export interface SqlClusterOptions {
  /** Opens the database for one more replica; it closes it. */
  readonly open: () => Promise<SqlDatabase>
  readonly prepare: (database: SqlDatabase) => Promise<void>
  readonly wake: (database: SqlDatabase) => Wake
}

export interface SqlCluster extends StateCluster {
  /** A connection beside those of the replicas. */
  readonly database: SqlDatabase
  join(about?: Parameters<StateCluster['join']>[0], options?: Partial<SqlStateOptions>): Promise<SqlState>
}

const SECRETS = ['the secret of a test'] as const

/** Replicas on one database, with short heartbeats. */
export const createSqlCluster = async ({ open, prepare, wake }: SqlClusterOptions): Promise<SqlCluster> => {
  const database = await open()
  await prepare(database)
  const joined: SqlState[] = []
  const end = async (replica: string): Promise<void> =>
    void (await database.run(`DELETE FROM ${stateTables(database).member} WHERE replica = ?`, replica))
  return {
    database,
    join: async (about, options = {}) => {
      const own = await open()
      const store = await SqlState.join({
        ...{ database: own, about, log: SILENT, beatMs: 20, pollMs: 500 },
        prepare: () => prepare(own),
        keys: deriveStoreKeys(SECRETS),
        wake: wake(own),
        ...options,
      })
      joined.push(store)
      return store
    },
    kill: end,
    lapse: end,
    close: async () => {
      for (const store of joined) await store.close()
      await database.close()
    },
  }
}

/** Notifications between the replicas of one process. */
export const createLocalWake = (): (() => Wake) => {
  const all = new Map<Wake, (topic: string) => void>()
  return () => {
    const own: Wake = {
      send: async topics => {
        for (const [wake, listener] of all) if (wake !== own) for (const topic of topics) listener(topic)
      },
      onWake: listener => void all.set(own, listener),
      close: async () => void all.delete(own),
    }
    return own
  }
}
