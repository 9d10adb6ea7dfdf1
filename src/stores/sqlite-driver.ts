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
  readonly path: string
  readonly sql: string
  readonly values: readonly SqliteValue[]
  readonly lockTimeoutMs: number
}

// A string, because the path of a worker's file differs between the sources and the build.
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require(workerData.module)
const run = ({ path, sql, values, lockTimeoutMs }) => {
  const database = new DatabaseSync(path, { timeout: lockTimeoutMs })
  try {
    database.exec('PRAGMA secure_delete = ON')
    database.prepare(sql).run(...values)
  } finally {
    database.close()
  }
}
parentPort.on('message', statement => {
  if (statement === undefined) return parentPort.close()
  try {
    run(statement)
    parentPort.postMessage(undefined)
  } catch (error) {
    parentPort.postMessage({ message: error.message, errcode: error.errcode })
  }
})
`

interface RunningStatement {
  readonly worker: Worker
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/**
 * A thread for long statements, one at a time, each on a connection of its own. It starts with the first, and ends
 * `idleMs` after the last: to start one costs 35 ms of CPU, more than most of its statements.
 */
export class StatementThread {
  readonly #driver: string
  readonly #idleMs: number
  #worker: Worker | undefined
  #running: RunningStatement | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(driver: string, idleMs: number) {
    this.#driver = driver
    this.#idleMs = idleMs
  }

  get isStarted(): boolean {
    return this.#worker !== undefined
  }

  /** Rejects with the driver's error. Not to be called before the previous statement has ended. */
  run(statement: ThreadStatement): Promise<void> {
    clearTimeout(this.#idle)
    const worker = this.#worker ?? this.#start()
    this.#worker = worker
    worker.ref()
    return new Promise<void>((resolve, reject) => {
      this.#running = { worker, resolve, reject }
      worker.postMessage(statement)
    })
  }

  /** Ends the thread, after the statement that it runs. The next statement starts another. */
  end(): void {
    clearTimeout(this.#idle)
    this.#worker?.postMessage(undefined)
    this.#worker = undefined
  }

  #start(): Worker {
    const driver = this.#driver
    const module = driver.startsWith('node:') ? driver : createRequire(import.meta.url).resolve(driver)
    const worker = new Worker(THREAD, { eval: true, execArgv: ['--no-warnings'], workerData: { module } })
    const lose = (error: Error): void => {
      if (this.#worker === worker) this.#worker = undefined
      this.#settle(worker, error)
    }
    worker.on('message', (failure: { message: string; errcode?: number } | undefined) =>
      this.#settle(worker, failure && Object.assign(new Error(failure.message), { errcode: failure.errcode })),
    )
    worker.on('error', lose)
    worker.on('exit', () => lose(new Error('The thread of a long SQLite statement ended without a result.')))
    return worker
  }

  #settle(worker: Worker, failure: Error | undefined): void {
    const running = this.#running
    if (running?.worker !== worker) return // one that has ended
    this.#running = undefined
    if (failure) running.reject(failure)
    else running.resolve()
    if (this.#worker !== worker) return
    worker.unref()
    this.#idle = setTimeout(() => this.end(), this.#idleMs).unref()
  }
}

/** Runs one long statement on a thread that ends with it; rejects with the driver's error. */
export const runOnThread = (driver: string, statement: ThreadStatement): Promise<void> => {
  const thread = new StatementThread(driver, 0)
  return thread.run(statement).finally(() => thread.end())
}
