import { identifier, literal, openPostgres, type Postgres, type Sql } from '../../../stores/postgres.ts'
import { isFailure } from '../../../stores/postgres-failures.ts'
import { StoreError } from '../store.ts'
import { inWords } from './failures.ts'
import { MIGRATIONS, TENANT_TABLES } from './schema.ts'

export interface PostgresOpenOptions {
  readonly url: string
  /** The schema of all our tables, and the name of the role that reads and writes them. */
  readonly schema?: string
  readonly mostConnections?: number
}

/** A database that is ready for tenants. */
export interface MemoryDatabase {
  readonly postgres: Postgres
  readonly schema: string
  /** How a transaction of a tenant begins, by the tenant's key: as the role that sees only rows of this tenant. */
  beginAs(key: string): string
  /** Counts the rows anew in the background, so that the planner knows how large a tenant has become. */
  freshen(): void
  close(): Promise<void>
}

const SCHEMA = 'dragoman_memory'
const OLDEST = 15 // the first in which a deleted row can empty one column of a key of two

const already = (error: unknown): boolean =>
  isFailure(error, 'constraint') ||
  (isFailure(error, 'other') && ['42P06', '42P07', '42710', 'XX000'].includes(error.state ?? ''))

/** Several nodes may start at once: what another has just made is as good as made. */
const unlessThere = async (make: () => Promise<unknown>): Promise<void> => {
  for (let tries = 0; ; tries++) {
    try {
      await make()
      return
    } catch (error) {
      if (!already(error) || tries >= 3) throw error
    }
  }
}

const refuseOld = async (sql: Sql, place: string): Promise<void> => {
  const row = await sql.get<{ version: string }>("SELECT current_setting('server_version_num') AS version")
  const version = Math.floor(Number(row?.version ?? 0) / 10_000)
  if (version < OLDEST)
    throw new StoreError('foreign', `${place} is PostgreSQL ${version}; ${OLDEST} or later is needed. Update it.`)
}

/** The role of all work: it owns nothing, so that row-level security holds for it. */
const makeRole = async (sql: Sql, role: string): Promise<void> => {
  const name = identifier(role)
  const known = await sql.get('SELECT 1 AS there FROM pg_roles WHERE rolname = ?', role)
  if (!known) await sql.exec(`CREATE ROLE ${name} NOLOGIN NOSUPERUSER NOBYPASSRLS`)
  const can = await sql.get<{ can: boolean }>("SELECT pg_has_role(current_user, ?, 'MEMBER') AS can", role)
  const isOurs = await sql.get<{ super: boolean }>(
    'SELECT rolsuper AS super FROM pg_roles WHERE rolname = current_user',
  )
  if (!can?.can || (!isOurs?.super && !known)) await sql.exec(`GRANT ${name} TO CURRENT_USER`)
}

const roleRefused = (role: string, error: unknown): unknown =>
  isFailure(error, 'denied')
    ? new StoreError(
        'foreign',
        `The role ${role} is needed and could not be made (${error.message}). Let an administrator run: CREATE ROLE ${role} NOLOGIN; GRANT ${role} TO the user of the connection.`,
        { cause: error },
      )
    : error

const grants = (schema: string): string => {
  const name = identifier(schema)
  return `GRANT USAGE ON SCHEMA ${name} TO ${name};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${name} TO ${name};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${name} TO ${name};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ${name} TO ${name};
REVOKE ALL ON ${name}.schema_version FROM ${name};`
}

/** Takes the schema to this program's version; one node does it and the others wait for the table. */
const migrate = (postgres: Postgres, schema: string): Promise<void> =>
  postgres.transaction(
    async sql => {
      await sql.exec('LOCK TABLE schema_version IN ACCESS EXCLUSIVE MODE')
      const version = (await sql.get<{ version: number }>('SELECT version FROM schema_version'))?.version ?? 0
      if (version > MIGRATIONS.length)
        throw new StoreError(
          'foreign',
          `The schema ${schema} in ${postgres.place} was written by a newer version (${version}, this one knows ${MIGRATIONS.length}). Update this node.`,
        )
      if (version === MIGRATIONS.length) return
      for (const step of MIGRATIONS.slice(version)) await sql.exec(step)
      await sql.exec(`DELETE FROM schema_version; INSERT INTO schema_version VALUES (${MIGRATIONS.length})`)
      await sql.exec(grants(schema))
    },
    // Temporary tables last: the functions keep this path, and nobody may slip a table of his own under their names.
    { begin: `SET LOCAL search_path = ${identifier(schema)}, pg_temp` },
  )

const prepare = async (postgres: Postgres, schema: string): Promise<void> => {
  const name = identifier(schema)
  await postgres.transaction(sql => refuseOld(sql, postgres.place))
  const isThere = await postgres.transaction(sql => sql.get('SELECT to_regclass(?) AS t', `${name}.schema_version`))
  if ((isThere as { t: string | null } | undefined)?.t == null) {
    await unlessThere(() => postgres.alone(`CREATE SCHEMA IF NOT EXISTS ${name}`))
    await unlessThere(() =>
      postgres.alone(`CREATE TABLE IF NOT EXISTS ${name}.schema_version (version INTEGER NOT NULL)`),
    )
  }
  try {
    await unlessThere(() => postgres.transaction(sql => makeRole(sql, schema)))
  } catch (error) {
    throw roleRefused(schema, error)
  }
  await migrate(postgres, schema)
}

/** Connects, and brings the schema up to date. */
export const openMemoryDatabase = async (options: PostgresOpenOptions): Promise<MemoryDatabase> => {
  const { url, schema = SCHEMA, mostConnections } = options
  const postgres = openPostgres({ url, ...(mostConnections !== undefined && { mostConnections }) })
  try {
    await prepare(postgres, schema)
  } catch (error) {
    await postgres.close()
    throw inWords(error, postgres.place)
  }
  const name = identifier(schema)
  let freshening: Promise<void> | undefined
  return {
    postgres,
    schema,
    // What is thought to be two rows may be many, and must not be gone through once for each of others.
    beginAs: key =>
      `SET LOCAL enable_material = off; SET LOCAL search_path = ${name}; SET LOCAL ROLE ${name}; SELECT set_config('dragoman.tenant', ${literal(key)}, true)`,
    freshen: () => {
      freshening ??= postgres
        .alone(`ANALYZE ${TENANT_TABLES.map(table => `${name}.${table}`).join(', ')}`)
        .catch(() => {}) // It is only slower without.
        .finally(() => (freshening = undefined))
    },
    close: async () => {
      await freshening
      await postgres.close()
    },
  }
}
