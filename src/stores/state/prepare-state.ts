import { POSTGRES } from '../dialect.ts'
import { migrate, type SchemaVersion } from '../migrations.ts'
import { isSqlFailure, type Sql, type SqlDatabase } from '../sql.ts'
import { createMeta, STATE_SCHEMA, stateMigrations, stateTables } from './state-schema.ts'

/** Why a database cannot hold the state of this gateway. It was not changed. */
export class UnusableStore extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'UnusableStore'
  }
}

/** Marks a file as the state of a gateway ("drgs"), so that a database of another program is never written to. */
const APPLICATION_ID = 0x64726773
const OLDEST_POSTGRES = 15

export const readMeta = async (sql: Sql, name: string): Promise<string | undefined> =>
  (await sql.get<{ value: string }>(`SELECT value FROM ${stateTables(sql).meta} WHERE name = ?`, name))?.value

/** Writes a value unless there is one, and returns the one that is there. */
export const claimMeta = async (sql: Sql, name: string, value: string): Promise<string> => {
  const known = await readMeta(sql, name)
  if (known !== undefined) return known
  const { meta } = stateTables(sql)
  await sql.run(`INSERT INTO ${meta} (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`, name, value)
  return (await readMeta(sql, name)) ?? value
}

export const replaceMeta = async (sql: Sql, name: string, value: string): Promise<void> =>
  void (await sql.run(`UPDATE ${stateTables(sql).meta} SET value = ? WHERE name = ?`, value, name))

const VERSION: SchemaVersion = {
  read: async sql => Number((await readMeta(sql, 'schema')) ?? 0),
  write: async (sql, version) => {
    await claimMeta(sql, 'schema', String(version))
    await replaceMeta(sql, 'schema', String(version))
  },
  // Another replica may migrate at the same time.
  lock: async sql => {
    if (sql.dialect === POSTGRES) await sql.exec(`LOCK TABLE ${stateTables(sql).meta} IN ACCESS EXCLUSIVE MODE`)
  },
}

const bringUpToDate = async (database: SqlDatabase): Promise<void> => {
  const migrations = stateMigrations(database)
  const version = await VERSION.read(database)
  if (version > migrations.length)
    throw new UnusableStore(
      `${database.location} was written by a newer version of dragoman (schema ${version}, this one knows ${migrations.length}). It was not changed: update dragoman.`,
    )
  await migrate(database, migrations, VERSION)
}

const readPragma = async (db: Sql, name: string): Promise<number> =>
  Number(Object.values((await db.get(`PRAGMA ${name}`)) ?? {})[0] ?? 0)

// NORMAL: a commit survives a killed process; those that must survive a power cut are synced one by one. Checkpoints
// run on another thread, because they would keep this one from serving.
const SETTINGS = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -8000;
PRAGMA journal_size_limit = 16777216;
PRAGMA trusted_schema = OFF;
`

/** Creates the tables of a file, or brings them up to date. Changes nothing in a file of another program. */
export const prepareSqlite = async (database: SqlDatabase): Promise<void> => {
  const id = await readPragma(database, 'application_id')
  const hasTables = (await database.get('SELECT 1 FROM sqlite_schema')) !== undefined
  if (id !== APPLICATION_ID && (id !== 0 || hasTables))
    throw new UnusableStore(`${database.location} is a database of another program. It was not changed: move it away.`)
  if (id === APPLICATION_ID && hasTables) {
    const version = await VERSION.read(database)
    if (version > stateMigrations(database).length) return bringUpToDate(database) // rejects it
  }
  await database.exec(SETTINGS)
  if (id !== APPLICATION_ID) await database.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
  await database.exec(createMeta(database))
  await bringUpToDate(database)
}

const EXISTS: readonly (string | undefined)[] = ['42P06', '42P07', '42710', 'XX000']

/** Retries when another replica creates the same at the same time. */
const createOnce = async (create: () => Promise<unknown>): Promise<void> => {
  for (let tries = 0; ; tries++) {
    try {
      return void (await create())
    } catch (error) {
      const exists = isSqlFailure(error, 'constraint') || (isSqlFailure(error, 'other') && EXISTS.includes(error.state))
      if (!exists || tries >= 3) throw error
    }
  }
}

/** Creates the schema with its tables, or brings it up to date. */
export const preparePostgres = async (database: SqlDatabase): Promise<void> => {
  const sql = "SELECT current_setting('server_version_num') AS version, to_regclass(?)::text AS meta"
  const { meta } = stateTables(database)
  // Unlike a statement by itself, a transaction is retried if the connection is lost.
  const row = await database.transaction(db => db.get<{ version: string; meta: string | null }>(sql, meta))
  const version = Math.floor(Number(row?.version ?? 0) / 10_000)
  if (version < OLDEST_POSTGRES)
    throw new UnusableStore(`${database.location} is PostgreSQL ${version}; ${OLDEST_POSTGRES} or later is needed.`)
  if (row?.meta == null) {
    await createOnce(() => database.exec(`CREATE SCHEMA IF NOT EXISTS ${STATE_SCHEMA}`))
    await createOnce(() => database.exec(createMeta(database)))
  }
  await bringUpToDate(database)
}
