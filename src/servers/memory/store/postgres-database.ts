import { migrate, type SchemaVersion } from '../../../stores/migrations.ts'
import { identifier, literal, openPostgres } from '../../../stores/postgres.ts'
import { isSqlFailure, type Sql, type SqlDatabase } from '../../../stores/sql.ts'
import { type ExplainedFailures, explainSqlError, StoreError } from '../store.ts'
import { POSTGRES_MIGRATIONS, TENANT_TABLES } from './postgres-schema.ts'

export interface MemoryDatabaseOptions {
  readonly url: string
  /** The schema of the tables, and the name of the role that reads and writes them. */
  readonly schema?: string
  readonly maxConnections?: number
}

/** A PostgreSQL database that is ready for tenants. */
export interface MemoryDatabase {
  readonly postgres: SqlDatabase
  /** The tables of tenants, with the schema. */
  readonly tables: readonly string[]
  /** Statements that begin a transaction as the role that sees only the rows of this tenant. */
  beginAs(tenantKey: string): string
  /** Updates the planner's statistics in the background, after a tenant has grown. */
  analyze(): void
  close(): Promise<void>
}

const DEFAULT_SCHEMA = 'dragoman_memory'
const OLDEST_VERSION = 15 // the first in which ON DELETE SET NULL can name one column of a key

const FAILURES: ExplainedFailures = {
  conflict: ['busy', 'is written to by others at the same places for too long. Nothing was stored; try again'],
  busy: ['busy', 'did not release a lock in time. Nothing was stored; try again'],
  full: ['full', 'cannot grow. Nothing of this call was stored. Make room and try again'],
  unreachable: ['busy', 'cannot be reached. Nothing was stored; check that it runs, and try again'],
  unsure: [
    'busy',
    'lost the connection while it stored this. Check whether it is there, or try again: the same episode is stored once',
  ],
  limit: ['invalid', 'cannot store a value as long as this. Nothing was stored; use shorter names'],
  denied: ['foreign', 'denies access. Check the user, the password and the rights'],
}

/** An error of PostgreSQL as a StoreError that says what to do; any other unchanged. */
export const explainDatabaseError = (error: unknown, location: string): unknown =>
  explainSqlError(error, `The memory database ${location}`, FAILURES)

const EXISTS_STATES: readonly (string | undefined)[] = ['42P06', '42P07', '42710', 'XX000']

/** Retries when another process creates the same at the same time. */
const createOnce = async (create: () => Promise<unknown>): Promise<void> => {
  for (let tries = 0; ; tries++) {
    try {
      await create()
      return
    } catch (error) {
      const exists =
        isSqlFailure(error, 'constraint') || (isSqlFailure(error, 'other') && EXISTS_STATES.includes(error.state))
      if (!exists || tries >= 3) throw error
    }
  }
}

const rejectOldServer = async (postgres: SqlDatabase): Promise<void> => {
  const sql = "SELECT current_setting('server_version_num') AS version"
  // Unlike a statement by itself, a transaction is retried if the connection is lost.
  const row = await postgres.transaction(db => db.get<{ version: string }>(sql), { readOnly: true })
  const version = Math.floor(Number(row?.version ?? 0) / 10_000)
  if (version >= OLDEST_VERSION) return
  const message = `${postgres.location} is PostgreSQL ${version}; ${OLDEST_VERSION} or later is needed. Update it.`
  throw new StoreError('foreign', message)
}

/** Creates the role that works for tenants: it owns nothing, so that row-level security applies to it. */
const createRole = async (sql: Sql, role: string): Promise<void> => {
  const name = identifier(role)
  const known = await sql.get('SELECT 1 AS known FROM pg_roles WHERE rolname = ?', role)
  if (!known) await sql.exec(`CREATE ROLE ${name} NOLOGIN NOSUPERUSER NOBYPASSRLS`)
  const member = await sql.get<{ is: boolean }>("SELECT pg_has_role(current_user, ?, 'MEMBER') AS is", role)
  const superuser = await sql.get<{ is: boolean }>('SELECT rolsuper AS is FROM pg_roles WHERE rolname = current_user')
  if (!member?.is || (!superuser?.is && !known)) await sql.exec(`GRANT ${name} TO CURRENT_USER`)
}

const explainRoleError = (role: string, error: unknown): unknown =>
  isSqlFailure(error, 'denied')
    ? new StoreError(
        'foreign',
        `The role ${role} is needed and could not be created (${error.message}). Let an administrator run: CREATE ROLE ${role} NOLOGIN; GRANT ${role} TO the user of the connection.`,
        { cause: error },
      )
    : error

const grants = (name: string): string => `GRANT USAGE ON SCHEMA ${name} TO ${name};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${name} TO ${name};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${name} TO ${name};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${name} TO ${name};
REVOKE ALL ON ${name}.schema_version FROM ${name};`

/** The schema's version, in a table. */
const versionIn = (name: string): SchemaVersion => {
  const table = `${name}.schema_version`
  return {
    lock: sql => sql.exec(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`),
    read: async sql => (await sql.get<{ version: number }>(`SELECT version FROM ${table}`))?.version ?? 0,
    write: (sql, version) =>
      sql.exec(`DELETE FROM ${table}; INSERT INTO ${table} VALUES (${version}); ${grants(name)}`),
  }
}

const prepare = async (postgres: SqlDatabase, schema: string): Promise<void> => {
  const name = identifier(schema)
  await rejectOldServer(postgres)
  const found = await postgres.get<{ t: string | null }>('SELECT to_regclass(?) AS t', `${name}.schema_version`)
  if (found?.t == null) {
    await createOnce(() => postgres.exec(`CREATE SCHEMA IF NOT EXISTS ${name}`))
    await createOnce(() =>
      postgres.exec(`CREATE TABLE IF NOT EXISTS ${name}.schema_version (version INTEGER NOT NULL)`),
    )
  }
  try {
    await createOnce(() => postgres.transaction(sql => createRole(sql, schema)))
  } catch (error) {
    throw explainRoleError(schema, error)
  }
  const version = versionIn(name)
  // Temporary tables last: the functions keep this path, and a table of another user must not hide theirs.
  await migrate(postgres, POSTGRES_MIGRATIONS, version, `SET LOCAL search_path = ${name}, pg_temp`)
  const known = await version.read(postgres)
  if (known > POSTGRES_MIGRATIONS.length)
    throw new StoreError(
      'foreign',
      `The schema ${schema} in ${postgres.location} was written by a newer version (${known}, this one knows ${POSTGRES_MIGRATIONS.length}). Update this node.`,
    )
}

/** Connects, and brings the schema up to date. */
export const openMemoryDatabase = async (options: MemoryDatabaseOptions): Promise<MemoryDatabase> => {
  const { url, schema = DEFAULT_SCHEMA, maxConnections } = options
  const postgres = openPostgres({ url, ...(maxConnections !== undefined && { maxConnections }) })
  try {
    await prepare(postgres, schema)
  } catch (error) {
    await postgres.close()
    throw explainDatabaseError(error, postgres.location)
  }
  const name = identifier(schema)
  const tables = TENANT_TABLES.map(table => `${name}.${table}`)
  let analyzing: Promise<void> | undefined
  return {
    postgres,
    tables,
    // The planner may take many rows for two, and must not read them once for each of others.
    beginAs: key =>
      `SET LOCAL enable_material = off; SET LOCAL search_path = ${name}; SET LOCAL ROLE ${name}; SELECT set_config('dragoman.tenant', ${literal(key)}, true)`,
    analyze: () => {
      analyzing ??= postgres
        .exec(`ANALYZE ${tables.join(', ')}`)
        .catch(() => {}) // Queries are only slower without it.
        .finally(() => (analyzing = undefined))
    },
    close: async () => {
      await analyzing
      await postgres.close()
    },
  }
}
