import { type Dialect, POSTGRES, SQLITE } from '../dialect.ts'

/** The schema of the tables in PostgreSQL. */
export const STATE_SCHEMA = 'dragoman_state'

/** The names of the tables in one engine. */
export interface StateTables {
  readonly record: string
  readonly event: string
  readonly inbox: string
  readonly member: string
  readonly rate: string
  readonly document: string
  readonly meta: string
}

const tablesIn = (schema: string): StateTables => ({
  record: `${schema}record`,
  event: `${schema}event`,
  inbox: `${schema}inbox`,
  member: `${schema}member`,
  rate: `${schema}rate`,
  document: `${schema}document`,
  meta: `${schema}meta`,
})

const SQLITE_TABLES = tablesIn('')
const POSTGRES_TABLES = tablesIn(`${STATE_SCHEMA}.`)

export const stateTables = ({ dialect }: { readonly dialect: Dialect }): StateTables =>
  dialect === POSTGRES ? POSTGRES_TABLES : SQLITE_TABLES

/** What the engines write differently in the same tables. */
interface StateLayout {
  readonly tables: StateTables
  readonly types: Dialect['types']
  readonly serial: string
  readonly unlogged: string // lost after a crash of the server; cheaper
  readonly clustered: string // rows are kept in the index of their key
}

// The id of a record is a hash of its kind and id. `home` is empty if no replica holds the record. Rows of `event` hold the events `seq` to `last` of a stream; those of a
// higher revision replace the same events of a lower one.
const createTables = ({
  tables: t,
  types: { integer, bytes, key },
  serial,
  unlogged,
  clustered,
}: StateLayout): string => `
CREATE TABLE ${t.record} (
  id ${key} PRIMARY KEY, kind ${key} NOT NULL, home ${key} NOT NULL, epoch ${integer} NOT NULL, expires ${integer} NOT NULL,
  body ${bytes} NOT NULL
)${clustered};
CREATE INDEX record_expires ON ${t.record} (kind, expires);
CREATE ${unlogged}TABLE ${t.event} (
  id ${key} NOT NULL, stream ${key} NOT NULL, seq ${integer} NOT NULL, revision ${integer} NOT NULL, last ${integer} NOT NULL,
  at ${integer} NOT NULL, bytes ${integer} NOT NULL, data ${bytes} NOT NULL, PRIMARY KEY (id, stream, seq, revision)
);
CREATE INDEX event_at ON ${t.event} (at, bytes);
CREATE TABLE ${t.inbox} (n ${serial}, id ${key} NOT NULL, data ${bytes} NOT NULL);
CREATE INDEX inbox_id ON ${t.inbox} (id, n);
CREATE TABLE ${t.member} (
  replica ${key} PRIMARY KEY, address TEXT NOT NULL, labels TEXT NOT NULL, version ${integer} NOT NULL,
  lease_until ${integer} NOT NULL
);
CREATE ${unlogged}TABLE ${t.rate} (
  key ${key} NOT NULL, started ${integer} NOT NULL, count ${integer} NOT NULL, PRIMARY KEY (started, key)
);
CREATE TABLE ${t.document} (name ${key} PRIMARY KEY, version ${integer} NOT NULL, body ${bytes} NOT NULL);
`

const SQLITE_LAYOUT: StateLayout = {
  tables: SQLITE_TABLES,
  types: SQLITE.types,
  serial: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  unlogged: '',
  clustered: ' WITHOUT ROWID',
}

const POSTGRES_LAYOUT: StateLayout = {
  tables: POSTGRES_TABLES,
  types: POSTGRES.types,
  serial: 'BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY',
  unlogged: 'UNLOGGED ',
  clustered: '',
}

/** The table that tells the others apart from those of another database. */
export const createMeta = ({ dialect }: { readonly dialect: Dialect }): string => {
  const { tables, types } = dialect === POSTGRES ? POSTGRES_LAYOUT : SQLITE_LAYOUT
  return `CREATE TABLE IF NOT EXISTS ${tables.meta} (name ${types.key} PRIMARY KEY, value TEXT NOT NULL)`
}

/** Each entry takes a database of the version before it to the next; a new one runs them all. */
export const stateMigrations = ({ dialect }: { readonly dialect: Dialect }): readonly string[] =>
  dialect === POSTGRES ? POSTGRES_MIGRATIONS : SQLITE_MIGRATIONS

// Finds the records of ended replicas without looking at all others.
const indexHomes = ({ tables: { record } }: StateLayout): string =>
  `CREATE INDEX record_home ON ${record} (kind, home, expires)`

const SQLITE_MIGRATIONS = [createTables(SQLITE_LAYOUT), indexHomes(SQLITE_LAYOUT)]
const POSTGRES_MIGRATIONS = [createTables(POSTGRES_LAYOUT), indexHomes(POSTGRES_LAYOUT)]
