import { statSync } from 'node:fs'
import { setImmediate as yieldTurn } from 'node:timers/promises'
import { isSqlFailure, type Sql, type SqlDatabase, SqlError } from '../../../stores/sql.ts'
import { retryWhileBusy } from '../../../stores/sqlite.ts'
import { createPrivateFile } from '../../../stores/sqlite-files.ts'
import { ftsQuery, queryTerms } from '../../../text/query.ts'
import { INDEX_COLUMNS, type IndexKind, StoreError } from '../store.ts'
import type { Engine, ErasureCheck, TextIndex } from './engine.ts'
import { findResidue, notIn, samplesOf } from './residue.ts'
import { ALWAYS, inGroups, passesFilter } from './rows.ts'
import { explainFileError, SQLITE_MIGRATIONS } from './sqlite-file.ts'

const insertInto = (kind: IndexKind): string => {
  const columns = INDEX_COLUMNS[kind]
  return `INSERT INTO ${kind}_fts (rowid, ${columns.join(', ')}) VALUES (?, ${columns.map(() => '?').join(', ')})`
}

const INSERTS: Readonly<Record<IndexKind, string>> = {
  doc: insertInto('doc'),
  fact: insertInto('fact'),
  entity: insertInto('entity'),
}

// An index with external content needs the indexed texts to remove a row.
const DELETES: Readonly<Record<IndexKind, string>> = {
  doc: `INSERT INTO doc_fts (doc_fts, rowid, ${INDEX_COLUMNS.doc.join(', ')}) VALUES ('delete', ?, ?, ?, ?, ?, ?)`,
  fact: 'DELETE FROM fact_fts WHERE rowid = ?',
  entity: 'DELETE FROM entity_fts WHERE rowid = ?',
}

/** Full-text search by FTS5, whose rank is BM25. */
const createTextIndex = (db: Sql): TextIndex => ({
  put: async (kind, rows) => {
    for (const { id, texts } of rows) await db.run(INSERTS[kind], id, ...texts)
  },
  replace: async (kind, before, after) => {
    await db.run(DELETES[kind], before.id, ...(kind === 'doc' ? before.texts : []))
    await db.run(INSERTS[kind], after.id, ...after.texts)
  },
  remove: async (kind, ids) => {
    if (ids.length === 0) return
    const columns = INDEX_COLUMNS.doc.join(', ')
    const sql =
      kind === 'doc'
        ? `INSERT INTO doc_fts (doc_fts, rowid, ${columns}) SELECT 'delete', id, ${columns} FROM doc_index
            WHERE ${db.dialect.inList('id')}`
        : `DELETE FROM ${kind}_fts WHERE ${db.dialect.inList('rowid')}`
    await db.run(sql, ids)
  },
  best: async (kind, query, weights, filter) => {
    const match = ftsQuery(query.terms)
    if (match === '' || query.limit <= 0) return new Map()
    const scope = inGroups(db, 'r.group_id', query.groups)
    const wanted = passesFilter(db, 'r', filter)
    const joined = scope === ALWAYS && wanted === ALWAYS ? '' : `JOIN ${kind} r ON r.id = i.rowid`
    const rows = await db.all<{ id: number; rank: number }>(
      `SELECT i.rowid AS id, i.rank AS rank FROM ${kind}_fts i ${joined}
        WHERE i.${kind}_fts MATCH ? AND i.rank MATCH ? AND ${scope.sql} AND ${wanted.sql} ORDER BY i.rank LIMIT ?`,
      match,
      `bm25(${weights.join(', ')})`,
      ...scope.values,
      ...wanted.values,
      query.limit,
    )
    return new Map(rows.map(({ id, rank }) => [id, -rank]))
  },
  containing: async (kind, columns, name, groups) => {
    const scope = inGroups(db, 'r.group_id', groups)
    const sql = `SELECT ${columns} FROM ${kind}_fts i JOIN ${kind} r ON r.id = i.rowid
      WHERE i.${kind}_fts MATCH ? AND ${scope.sql}`
    return db.all(sql, ftsQuery(queryTerms(name)).replaceAll(' OR ', ' AND '), ...scope.values)
  },
  flush: async () => 0,
})

const LOG_TIMEOUT_MS = 2_000
const MERGE_STEP = 500 // pages of the index at a time

/** Merges the parts of an index until no deleted word is left in it. */
const mergeIndex = async (database: SqlDatabase, kind: IndexKind): Promise<void> => {
  const readChanges = async (sql: Sql) => (await sql.get<{ n: number }>('SELECT total_changes() AS n'))?.n ?? 0
  for (let step = -MERGE_STEP; ; step = MERGE_STEP) {
    const changes = await database.transaction(async sql => {
      const before = await readChanges(sql)
      await sql.run(`INSERT INTO ${kind}_fts (${kind}_fts, rank) VALUES ('merge', ?)`, step)
      return (await readChanges(sql)) - before
    })
    if (changes < 2) return // nothing was left to merge
    await yieldTurn()
  }
}

const emptyLog = async (database: SqlDatabase): Promise<void> => {
  const result = await database.get<{ busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)')
  if (result?.busy === 1) throw new SqlError('busy', 'another connection reads the log')
}

/** Removes deleted words from the indexes, the gaps between rows and the log. Returns whether the log is empty. */
const removeDeletedBytes = async (database: SqlDatabase): Promise<boolean> => {
  for (const kind of ['doc', 'fact', 'entity'] as const) await mergeIndex(database, kind)
  // Rows that moved between pages leave copies that not even secure_delete reaches; a rebuilt file has none.
  await database.runLong('VACUUM')
  try {
    await retryWhileBusy(() => emptyLog(database), LOG_TIMEOUT_MS)
    return true
  } catch (error) {
    if (isSqlFailure(error, 'busy')) return false // A reader of an older state keeps the log.
    throw error
  }
}

const STORED_TEXTS = [
  'SELECT id, content, name, source_description FROM episode',
  'SELECT id, fact, attributes FROM fact',
  'SELECT id, name, summary, attributes FROM entity',
  'SELECT id, text, index_text, prev, next FROM doc',
]
const PAGE = 200

/** Every text of the store, a page at a time. */
const readStoredTexts = async function* (database: SqlDatabase): AsyncGenerator<readonly string[]> {
  for (const sql of STORED_TEXTS)
    for (let after = 0, isMore = true; isMore; ) {
      const rows = await database.all(`${sql} WHERE id > ? ORDER BY id LIMIT ${PAGE}`, after)
      yield rows.flatMap(({ id: _, ...texts }) =>
        Object.values(texts)
          .filter(text => text !== null)
          .map(String),
      )
      after = Number(rows.at(-1)?.id ?? after)
      isMore = rows.length === PAGE
    }
}

const purge = async (database: SqlDatabase, texts: readonly string[]): Promise<ErasureCheck> => {
  const isLogEmpty = await removeDeletedBytes(database)
  const files = ['', '-wal', '-shm'].map(end => `${database.location}${end}`)
  const samples = samplesOf(texts)
  // Words that other rows contain too may stay.
  const left = await notIn(readStoredTexts(database), await findResidue(files, samples))
  return {
    checked: samples.length,
    gone: samples.length - left.length,
    files,
    clean: left.length === 0 && isLogEmpty,
  }
}

/** Identifies the file at a path: SQLite goes on writing into a deleted one. */
const fileAt = (path: string): string | undefined => {
  const found = statSync(path, { throwIfNoEntry: false })
  return found && `${found.dev}/${found.ino}`
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** One tenant's memory in an open SQLite file. */
export const createSqliteEngine = (database: SqlDatabase): Engine => {
  const path = database.location
  const opened = fileAt(path)
  return {
    database,
    schemaVersion: SQLITE_MIGRATIONS.length,
    key: columns => columns,
    createIndex: createTextIndex,
    sizeOf: async () => sizeOf(path) + sizeOf(`${path}-wal`),
    check: () => {
      if (fileAt(path) === opened) return
      throw new StoreError(
        'damaged',
        `The memory file ${path} was deleted or replaced while it was in use. Nothing of this call was stored. Call again: the file that is there now is opened, or a new one is created.`,
      )
    },
    explain: error => explainFileError(error, path),
    onIndexed: () => {},
    purge: texts => purge(database, texts),
    copyTo: async target => {
      await createPrivateFile(target)
      await database.runLong('VACUUM INTO ?', target)
    },
    close: () => database.close(),
  }
}
