import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { chmod, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { openSqlite, type Sqlite } from '../../../stores/sqlite.ts'
import { StoreError } from '../store.ts'
import { inWords } from './failures.ts'
import { APPLICATION_ID, MIGRATIONS } from './schema.ts'

const pragma = (db: Sqlite, name: string): number => Number(Object.values(db.get(`PRAGMA ${name}`) ?? {})[0] ?? 0)

const RESTORE = 'It was left as it is. Move it away and put a backup in its place, or start anew without it.'

const MAGIC = 'SQLite format 3\0'

/** How many bytes the header says the file has; a shorter one lost its end. 0 when it does not say. */
const lengthInHeader = (path: string): number => {
  const header = Buffer.alloc(100)
  const file = openSync(path, 'r')
  try {
    readSync(file, header, 0, header.length, 0)
  } finally {
    closeSync(file)
  }
  // The length holds only if it was written together with the latest change.
  const isCurrent = header.readUInt32BE(24) === header.readUInt32BE(92)
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC || !isCurrent) return 0
  const pageSize = header.readUInt16BE(16)
  return header.readUInt32BE(28) * (pageSize === 1 ? 65_536 : pageSize)
}

const isEmpty = (path: string): boolean => !existsSync(path) || statSync(path).size === 0

/** Whether pages wait in the write-ahead log, in which case the main file may rightly be the shorter one. */
const hasLog = (path: string): boolean => !isEmpty(`${path}-wal`)

/** A file somebody began to make, and was killed. */
const isUnborn = (db: Sqlite): boolean =>
  pragma(db, 'application_id') === 0 && db.get('SELECT 1 FROM sqlite_schema') === undefined

const refuseForeign = (db: Sqlite, path: string): void => {
  if (isUnborn(db)) return
  if (pragma(db, 'application_id') !== APPLICATION_ID)
    throw new StoreError('foreign', `${path} is a database of another program. ${RESTORE}`)
  const version = pragma(db, 'user_version')
  if (version > MIGRATIONS.length)
    throw new StoreError(
      'foreign',
      `${path} was written by a newer version (schema ${version}, this one knows ${MIGRATIONS.length}). Update, or restore an older backup.`,
    )
}

const MAKING_MS = 300

const refuseTruncated = async (path: string): Promise<void> => {
  const isShort = () => !hasLog(path) && statSync(path).size < lengthInHeader(path)
  if (!isShort()) return
  await delay(MAKING_MS) // Another process may be making it just now.
  const [expected, size] = [lengthInHeader(path), statSync(path).size]
  if (isShort())
    throw new StoreError('damaged', `${path} is truncated: ${size} of ${expected} bytes are there. ${RESTORE}`)
}

// WAL: readers never wait for writers, and two processes can share the file. FULL: a commit is on the disk before
// it is acknowledged, so not even a power cut takes back what was answered (NORMAL survives a killed process only).
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

/** Brings the schema up to date, one version at a time, each whole or not at all. */
export const migrate = async (db: Sqlite, steps: readonly string[] = MIGRATIONS): Promise<void> => {
  while ((await db.patiently(() => pragma(db, 'user_version'))) < steps.length)
    await db.write(() => {
      // Another process may have done it while we waited for the lock.
      const version = pragma(db, 'user_version')
      const step = steps[version]
      if (step === undefined) return
      db.exec(step)
      db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
      db.exec(`PRAGMA user_version = ${version + 1}`)
    })
}

const prepare = async (db: Sqlite, path: string, isNew: boolean): Promise<void> => {
  await db.patiently(() => {
    if (!isNew) refuseForeign(db, path)
    else db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    db.exec(SETTINGS)
  })
  await migrate(db)
}

const OWNER_ONLY = 0o600

/** Makes an empty file that nobody else can read; the log beside it takes its mode over. */
export const make = async (path: string): Promise<void> => (await open(path, 'a', OWNER_ONLY)).close()

/** Whoever is not the owner of a file that others may read cannot change that, and need not. */
const keepPrivate = async (path: string): Promise<void> => {
  if ((statSync(path).mode & 0o077) !== 0) await chmod(path, OWNER_ONLY).catch(() => undefined)
}

/** Opens a tenant's file, makes it when it is not there, and refuses what is not ours or not whole without touching it. */
export const openMemoryFile = async (path: string): Promise<Sqlite> => {
  let db: Sqlite | undefined
  try {
    if (path !== ':memory:') await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const isNew = path === ':memory:' || (isEmpty(path) && !hasLog(path))
    if (!isNew) await refuseTruncated(path)
    else if (path !== ':memory:') await make(path)
    db = await openSqlite(path)
    await prepare(db, path, isNew)
    if (path !== ':memory:') await keepPrivate(path)
    return db
  } catch (error) {
    db?.close()
    throw inWords(error, path)
  }
}
