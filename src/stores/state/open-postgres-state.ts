import type { Log } from '../../telemetry/log.ts'
import { openPostgres } from '../postgres.ts'
import type { OpenState } from './open-state.ts'
import { listenOnPostgres } from './postgres-wake.ts'
import { claimMeta, preparePostgres, UnusableStore } from './prepare-state.ts'
import { deriveKeys, deriveStoreKeys, newSecret, type Secrets } from './secret.ts'
import { SqlState } from './sql-state.ts'

/** A database that replicas share. */
export interface PostgresPlace {
  readonly url: string
  /** Undefined: the first replica creates one in the database. */
  readonly secrets?: Secrets | undefined
}

const ANSWER_MS = 20_000 // callers wait for two seconds
const MIGRATION = { answerMs: 65_000, lockTimeoutMs: 60_000 } // of large tables, or while another replica runs it

/** Opens the state in a PostgreSQL database; rejects with UnusableStore. */
export const openPostgresState = async ({ url, secrets: given }: PostgresPlace, log: Log): Promise<OpenState> => {
  const database = openPostgres({ url, answerMs: ANSWER_MS })
  try {
    await migrate(url)
    const secrets = given ?? [await claimMeta(database, 'secret', newSecret())]
    // After a loss of all data, replicas that start later find the secret that the others go on with.
    const prepare = async () => {
      await migrate(url)
      if (!given) await claimMeta(database, 'secret', secrets[0])
    }
    const wake = listenOnPostgres(url, database)
    const joined = SqlState.join({ database, prepare, keys: deriveStoreKeys(secrets), wake, log })
    const store = await joined.catch(async (error: unknown) => {
      await wake.close()
      throw error
    })
    return { store, keys: deriveKeys(secrets) }
  } catch (error) {
    await database.close()
    throw new UnusableStore(explain(error, database.location), { cause: error })
  }
}

/** On a connection of its own, which waits longer. */
const migrate = async (url: string): Promise<void> => {
  const database = openPostgres({ url, maxConnections: 1, ...MIGRATION })
  await preparePostgres(database).finally(() => database.close())
}

const explain = (error: unknown, location: string): string => {
  if (error instanceof UnusableStore) return error.message
  const detail = error instanceof Error ? error.message : String(error)
  return `the store ${location} cannot be used: ${detail}. Check that it runs, and "store" in the configuration; or keep state in memory with --ephemeral`
}
