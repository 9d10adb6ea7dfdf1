import { join } from 'node:path'
import type { Log } from '../../telemetry/log.ts'
import { isSqlFailure, type SqlFailure } from '../sql.ts'
import { openSqlite } from '../sqlite.ts'
import { createPrivateFile, findTruncation, isNewFile, makePrivate } from '../sqlite-files.ts'
import { DataDirectoryInUse, lockDataDirectory } from './data-lock.ts'
import { MemoryCluster } from './memory-state.ts'
import type { PostgresPlace } from './open-postgres-state.ts'
import { prepareSqlite, UnusableStore } from './prepare-state.ts'
import { deriveKeys, deriveStoreKeys, randomKeys, readSecretFile, type Secrets, type StateKeys } from './secret.ts'
import { SqlState } from './sql-state.ts'
import { createUpkeep } from './sqlite-upkeep.ts'
import type { StateStore } from './state-store.ts'
import { NO_WAKE, type Wake } from './wake.ts'

/** Where state is kept: a file in the data directory, or a PostgreSQL database. */
export type StatePlace =
  | { readonly kind: 'sqlite'; readonly data: string; readonly sharing?: FileSharing | undefined }
  | ({ readonly kind: 'postgres' } & PostgresPlace)

/** How the processes of one gateway share its file; without it, one process uses the file. */
export interface FileSharing {
  /** The main process holds the lock of the data directory. The others are its child processes, and end with it. */
  readonly isMain: boolean
  readonly wake: Wake
}

export interface OpenState {
  readonly store: StateStore
  readonly keys: StateKeys
}

/**
 * Opens the state. A file that cannot be used is left as it is, and state is kept in memory. Rejects if another process
 * uses the data directory, and if a PostgreSQL database cannot be used.
 */
export const openState = async (place: StatePlace, log: Log): Promise<OpenState> => {
  if (place.kind === 'sqlite') {
    const { data, sharing } = place
    return sharing?.isMain === false ? joinSqliteState(data, sharing, log) : openSqliteState(data, sharing, log)
  }
  const { openPostgresState } = await import('./open-postgres-state.ts') // its library takes long to load
  return openPostgresState(place, log)
}

const inMemory = (): OpenState => ({ store: new MemoryCluster().join(), keys: randomKeys() })

const FAILURES: { readonly [kind in SqlFailure]?: string } = {
  full: 'the disk is full',
  readonly: 'it is read-only',
  damaged: 'it is damaged',
  foreign: 'it is not a database',
  unreachable: 'it cannot be read or written',
}

const explain = (error: unknown, path: string): string => {
  if (error instanceof UnusableStore) return error.message
  const reason = isSqlFailure(error, 'full', 'readonly', 'damaged', 'foreign', 'unreachable') && FAILURES[error.kind]
  const detail = error instanceof Error ? error.message : String(error)
  return `${path} cannot be used: ${reason ? `${reason} (${detail})` : detail}. It was not changed.`
}

/** Rejects if the file cannot be used: a store of its own would make a worker another gateway. */
const joinSqliteState = async (data: string, sharing: FileSharing, log: Log): Promise<OpenState> => {
  const secrets = await readSecretFile(data)
  return { store: await openFile(join(data, 'state.db'), secrets, log, sharing), keys: deriveKeys(secrets) }
}

const openSqliteState = async (data: string, sharing: FileSharing | undefined, log: Log): Promise<OpenState> => {
  const path = join(data, 'state.db')
  let release: (() => Promise<void>) | undefined
  try {
    release = await lockDataDirectory(data)
    const secrets = await readSecretFile(data)
    const store = await openFile(path, secrets, log, sharing)
    return { store: withRelease(store, release), keys: deriveKeys(secrets) }
  } catch (error) {
    if (error instanceof DataDirectoryInUse) throw error
    const reason = explain(error, path)
    log.error({ file: path, reason }, 'state is kept in memory only; sessions end with this process')
    return memoryOnly(reason, release, data)
  }
}

/** A store in memory that says why it is not the one of the data directory. */
const memoryOnly = async (
  reason: string,
  release: (() => Promise<void>) | undefined,
  data: string,
): Promise<OpenState> => {
  const { store, keys } = inMemory()
  const health = store.health.bind(store)
  store.health = () => ({ ...health(), engine: 'sqlite', state: 'memory-only', reason })
  // Ids stay valid if the file can be used again.
  const secrets = await readSecretFile(data).catch(() => undefined)
  return { store: withRelease(store, release ?? (async () => {})), keys: secrets ? deriveKeys(secrets) : keys }
}

const withRelease = (store: StateStore, release: () => Promise<void>): StateStore => {
  const close = store.close.bind(store)
  store.close = async () => {
    await close()
    await release()
  }
  return store
}

const openFile = async (
  path: string,
  secrets: Secrets,
  log: Log,
  sharing: FileSharing | undefined,
): Promise<StateStore> => {
  if (isNewFile(path)) await createPrivateFile(path)
  else if (sharing?.isMain !== false) {
    const truncation = await findTruncation(path)
    if (truncation) throw new UnusableStore(`${path} ${truncation}. It was not changed: move it away.`)
  }
  const database = await openSqlite(path)
  try {
    const prepare = () => prepareSqlite(database)
    await prepare()
    await makePrivate(path)
    const { checkpoint, sync, end } = createUpkeep(database, log)
    const keys = deriveStoreKeys(secrets)
    const { isMain = true, wake = NO_WAKE } = sharing ?? {}
    const upkeep = isMain ? checkpoint : () => {} // one process is enough for that
    const place = { isFirst: isMain, isOnly: sharing === undefined }
    const state = await SqlState.join({ database, prepare, keys, wake, log, upkeep, sync, ...place })
    return withRelease(state, async () => end())
  } catch (error) {
    await database.close().catch(() => {})
    throw error
  }
}
