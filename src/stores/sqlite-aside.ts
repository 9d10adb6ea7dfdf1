import { createRequire } from 'node:module'
import { Worker } from 'node:worker_threads'
import type { SqlValue } from './sqlite.ts'

/** One statement for a connection of its own. */
export interface AsideWork {
  readonly driver: string
  readonly path: string
  readonly sql: string
  readonly values: readonly SqlValue[]
  readonly patience: number // ms
}

// Written as text because a thread begins with a file, and of ours it could not be told where it lies once built.
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads')
const { DatabaseSync } = require(workerData.module)
const run = () => {
  const database = new DatabaseSync(workerData.path, { timeout: workerData.patience })
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

const moduleOf = (driver: string): string =>
  driver.startsWith('node:') ? driver : createRequire(import.meta.url).resolve(driver)

/** Runs a statement that takes long on a thread of its own, so that this one goes on; rejects with what the driver said. */
export const runAside = ({ driver, path, sql, values, patience }: AsideWork): Promise<void> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(THREAD, {
      eval: true,
      execArgv: ['--no-warnings'],
      workerData: { module: moduleOf(driver), path, sql, values, patience },
    })
    worker.once('message', (failure: { message: string; errcode?: number } | undefined) => {
      if (failure === undefined) resolve()
      else reject(Object.assign(new Error(failure.message), { errcode: failure.errcode }))
    })
    worker.once('error', reject)
    worker.once('exit', () => reject(new Error('The thread ended without an answer.')))
  })
