import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'

/** A value that SQLite takes or returns. */
export type SqliteValue = string | number | null | Uint8Array

/** A prepared statement, as both libraries have it. */
export interface Statement {
  all(...values: readonly SqliteValue[]): unknown[]
  get(...values: readonly SqliteValue[]): unknown
  run(...values: readonly SqliteValue[]): { changes: number | bigint; lastInsertRowid: number | bigint }
}

/** A connection, as both libraries have it. */
export interface Connection {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

type ConnectionClass = new (path: string, options: { readOnly?: boolean; timeout?: number }) => Connection

/** Node.js warns when its own SQLite is loaded for the first time; users must not see that. */
const withoutWarning = <Result>(load: () => Result): Result => {
  const warn = process.emitWarning
  process.emitWarning = ((...args: Parameters<typeof warn>) => {
    if (!/SQLite/.test(String(args[0]))) warn.apply(process, args)
  }) as typeof warn
  try {
    return load()
  } finally {
    process.emitWarning = warn
  }
}

const hasFullTextSearch = (Class: ConnectionClass): boolean => {
  const connection = new Class(':memory:', {})
  try {
    const row = connection.prepare("SELECT sqlite_compileoption_used('ENABLE_FTS5') AS has").get() as { has: number }
    return row.has === 1
  } finally {
    connection.close()
  }
}

const findBuiltIn = (): ConnectionClass | undefined => {
  const load = (process as { getBuiltinModule?: (id: string) => unknown }).getBuiltinModule
  const module = withoutWarning(() => load?.('node:sqlite')) as { DatabaseSync: ConnectionClass } | undefined
  return module && hasFullTextSearch(module.DatabaseSync) ? module.DatabaseSync : undefined
}

/** Loads the SQLite of Node.js if it has full-text search, otherwise the bundled one. */
export const loadDriver = async (): Promise<{ name: string; Class: ConnectionClass }> => {
  const builtIn = findBuiltIn()
  if (builtIn) return { name: 'node:sqlite', Class: builtIn }
  const { DatabaseSync } = await import('@photostructure/sqlite')
  return { name: '@photostructure/sqlite', Class: DatabaseSync as unknown as ConnectionClass }
}

/** One statement for a connection of its own. */
export interface ThreadStatement {
  readonly driver: string
  readonly path: string
  readonly sql: string
  readonly values: readonly SqliteValue[]
  readonly lockTimeoutMs: number
}

// A string, because the path of a worker's file differs between the sources and the build.
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require(workerData.module)
const run = () => {
  const database = new DatabaseSync(workerData.path, { timeout: workerData.lockTimeoutMs })
  try {
    database.exec('PRAGMA secure_delete = ON')
    database.prepare(workerData.sql).run(...workerData.values)
  } finally {
    database.close()
  }
}
try {
  run()
  parentPort.postMessage(undefined)
} catch (error) {
  parentPort.postMessage({ message: error.message, errcode: error.errcode })
}
`

/** Runs a long statement on a thread and a connection of its own; rejects with the driver's error. */
export const runOnThread = ({ driver, ...statement }: ThreadStatement): Promise<void> =>
  new Promise((resolve, reject) => {
    const module = driver.startsWith('node:') ? driver : createRequire(import.meta.url).resolve(driver)
    const worker = new Worker(THREAD, {
      eval: true,
      execArgv: ['--no-warnings'],
      workerData: { module, ...statement },
    })
    worker.once('message', (failure: { message: string; errcode?: number } | undefined) => {
      if (failure === undefined) resolve()
      else reject(Object.assign(new Error(failure.message), { errcode: failure.errcode }))
    })
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('The thread of a long SQLite statement ended without a result.')))
  })
