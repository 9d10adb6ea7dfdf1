import { join } from 'node:path'
import { isSqlFailure } from '../sql.ts'
import { openSqlite } from '../sqlite.ts'
import { createPrivateFile } from '../sqlite-files.ts'

/** Another process holds the lock of the data directory. */
export class DataDirectoryInUse extends Error {
  readonly pid: number

  constructor(data: string, pid: number) {
    super(
      `the data directory ${data} is in use by the dragoman with process id ${pid}; stop that one, choose another directory with --data, or keep no state with --ephemeral`,
    )
    this.name = 'DataDirectoryInUse'
    this.pid = pid
  }
}

const HOLD = 'BEGIN IMMEDIATE' // other processes can still read who holds it
const LOCK_TIMEOUT_MS = 200

/** Takes the lock of a data directory, which ends with the process, however it ends. Returns a function that releases it. */
export const lockDataDirectory = async (data: string): Promise<() => Promise<void>> => {
  const path = join(data, 'state.lock')
  await createPrivateFile(path)
  const lock = await openSqlite(path, { lockTimeoutMs: LOCK_TIMEOUT_MS })
  try {
    await lock.exec(HOLD)
    await lock.exec('CREATE TABLE IF NOT EXISTS holder (pid INTEGER NOT NULL); DELETE FROM holder')
    await lock.run('INSERT INTO holder VALUES (?)', process.pid)
    await lock.exec('COMMIT')
    await lock.exec(HOLD)
  } catch (error) {
    const holder = await lock.get<{ pid: number }>('SELECT pid FROM holder').catch(() => undefined)
    await lock.close().catch(() => {})
    if (isSqlFailure(error, 'busy')) throw new DataDirectoryInUse(data, holder?.pid ?? 0)
    throw error
  }
  return async () => {
    await lock.exec('ROLLBACK')
    await lock.close()
  }
}
