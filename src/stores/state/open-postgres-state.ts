import type { Log } from '../../telemetry/log.ts'
import { openPostgres } from '../postgres.ts'
import type { SqlDatabase } from '../sql.ts'
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

/** Opens the state in a PostgreSQL database; rejects with UnusableStore. */
export const openPostgresState = async ({ url, secrets: given }: PostgresPlace, log: Log): Promise<OpenState> => {
  const database = openPostgres({ url })
  try {
    const prepare = () => preparePostgres(database)
    await prepare()
    const secrets = given ?? (await secretOf(database))
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

const secretOf = async (database: SqlDatabase): Promise<Secrets> => [await claimMeta(database, 'secret', newSecret())]

const explain = (error: unknown, location: string): string => {
  if (error instanceof UnusableStore) return error.message
  const detail = error instanceof Error ? error.message : String(error)
  return `the store ${location} cannot be used: ${detail}. Check that it runs, and "store" in the configuration; or keep state in memory with --ephemeral`
}
