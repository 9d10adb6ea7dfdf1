import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { SQLITE } from '../../../stores/dialect.ts'
import { migrate, type SchemaVersion } from '../../../stores/migrations.ts'
import type { Sql, SqlDatabase } from '../../../stores/sql.ts'
import { IN_MEMORY, openSqlite } from '../../../stores/sqlite.ts'
import { createPrivateFile, findTruncation, isNewFile, makePrivate } from '../../../stores/sqlite-files.ts'
import { type ExplainedFailures, explainSqlError, StoreError } from '../store.ts'
import { createTables, type SchemaLayout } from './schema.ts'

/** Marks a file as a memory ("drgm"), so that a database of another program is never written to. */
export const APPLICATION_ID = 0x6472676d

const LAYOUT: SchemaLayout = {
  types: SQLITE.types,
  tenant: '',
  rowId: 'id INTEGER PRIMARY KEY',
  serialId: 'id INTEGER PRIMARY KEY AUTOINCREMENT',
  idConstraint: '',
  keyedTable: ' WITHOUT ROWID',
  key: columns => columns,
  references: (column, table, onDelete) =>
    `FOREIGN KEY (${column}) REFERENCES ${table} (id)${onDelete ? ` ON DELETE ${onDelete}` : ''}`,
}

const TOKENIZER = "tokenize = 'porter unicode61 remove_diacritics 2'"

// A passage is indexed by its index text if it has one; so the content of its index is a view.
const INDEXES = `
CREATE UNIQUE INDEX doc_episode ON doc (episode_id, ord);
CREATE INDEX entity_group ON entity (group_id);
CREATE VIEW doc_index AS
  SELECT id, coalesce(index_text, text) AS text, coalesce(actor, '') AS actor, prev, next, dt FROM doc;
CREATE VIRTUAL TABLE doc_fts USING fts5(
  text, actor, prev, next, dt, content = 'doc_index', content_rowid = 'id', ${TOKENIZER}
);
CREATE VIRTUAL TABLE fact_fts USING fts5(fact, ents, dt, ${TOKENIZER});
CREATE VIRTUAL TABLE entity_fts USING fts5(name, aliases, summary, ${TOKENIZER});
`

/** Each entry takes a file of the version before it to the next; a new file runs them all. */
export const SQLITE_MIGRATIONS: readonly string[] = [createTables(LAYOUT) + INDEXES]

const readPragma = async (db: Sql, name: string): Promise<number> =>
  Number(Object.values((await db.get(`PRAGMA ${name}`)) ?? {})[0] ?? 0)

/** The schema's version, in the header of the file. */
export const SQLITE_VERSION: SchemaVersion = {
  read: sql => readPragma(sql, 'user_version'),
  write: (sql, version) => sql.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${version}`),
}

const FAILURES: ExplainedFailures = {
  busy: ['busy', 'is locked by another process for too long. Try again; if it stays so, end the other process'],
  full: ['full', 'cannot grow: the disk is full. Nothing of this call was stored. Make room and try again'],
  damaged: ['damaged', 'is damaged. It was not changed. Move it away and put a backup in its place'],
  foreign: ['foreign', 'is not a memory database. It was not changed. Move it away, or restore a backup'],
  unreachable: ['damaged', 'cannot be read or written. Check that the disk is there and the permissions are right'],
  readonly: ['full', 'is read-only. Check its permissions and those of its folder'],
}

/** The error of SQLite or the file system as a StoreError that says what to do; any other unchanged. */
export const explainFileError = (error: unknown, path: string): unknown => {
  if (error instanceof Error && 'syscall' in error)
    return new StoreError(
      'damaged',
      `The memory file ${path} cannot be opened or created. Check its folder and the permissions there (${error.message}).`,
      { cause: error },
    )
  return explainSqlError(error, `The memory file ${path}`, FAILURES)
}

const RESTORE = 'It was not changed. Move it away and put a backup in its place, or start without it.'

const rejectForeign = async (db: SqlDatabase, path: string): Promise<void> => {
  const id = await readPragma(db, 'application_id')
  // The creation of an empty file was interrupted; it is continued.
  if (id === 0 && (await db.get('SELECT 1 FROM sqlite_schema')) === undefined) return
  if (id !== APPLICATION_ID) throw new StoreError('foreign', `${path} is a database of another program. ${RESTORE}`)
  const version = await readPragma(db, 'user_version')
  if (version > SQLITE_MIGRATIONS.length)
    throw new StoreError(
      'foreign',
      `${path} was written by a newer version (schema ${version}, this one knows ${SQLITE_MIGRATIONS.length}). Update, or restore an older backup.`,
    )
}

// WAL: readers never wait for writers, and two processes can share the file. FULL: a commit is on the disk before it is
// acknowledged, so that it survives a power cut (NORMAL survives only a killed process).
const SETTINGS = `
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA secure_delete = ON;
PRAGMA foreign_keys = ON;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -16000;
PRAGMA journal_size_limit = 16777216;
PRAGMA trusted_schema = OFF;
`

/** Creates a tenant's file if there is none, and returns whether it is new. */
const prepareFile = async (path: string): Promise<boolean> => {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const isNew = isNewFile(path)
  if (isNew) await createPrivateFile(path)
  const truncation = isNew ? undefined : await findTruncation(path)
  if (truncation) throw new StoreError('damaged', `${path} ${truncation}. ${RESTORE}`)
  return isNew
}

/** Opens a tenant's file, or creates it. Rejects a foreign or damaged file without changing it. */
export const openMemoryFile = async (path: string): Promise<SqlDatabase> => {
  let db: SqlDatabase | undefined
  try {
    const isNew = path === IN_MEMORY || (await prepareFile(path))
    db = await openSqlite(path)
    if (isNew) await db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    else await rejectForeign(db, path)
    await db.exec(SETTINGS)
    await migrate(db, SQLITE_MIGRATIONS, SQLITE_VERSION)
    if (path !== IN_MEMORY) await makePrivate(path)
    return db
  } catch (error) {
    await db?.close()
    throw explainFileError(error, path)
  }
}
