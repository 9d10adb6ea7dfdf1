import { open, stat } from 'node:fs/promises'
import type { Log } from '../../telemetry/log.ts'
import type { SqlDatabase } from '../sql.ts'
import { StatementThread } from '../sqlite-driver.ts'

const CHECKPOINT_BYTES = 4 * 1024 * 1024
const RESTART_BYTES = 64 * 1024 * 1024
const QUIET_MS = 30_000
const LOCK_TIMEOUT_MS = 2000
const THREAD_IDLE_MS = 60_000 // a gateway that stores much needs it at each heartbeat

/** What a SQLite file needs besides its statements. */
export interface SqliteUpkeep {
  /** Copies the log into the file if it has grown, on another thread: a checkpoint would block this one. */
  checkpoint(): void
  /** Resolves when every commit so far survives a power cut. */
  sync(): Promise<void>
  /** Ends the thread of checkpoints. */
  end(): void
}

export const createUpkeep = ({ location, driver }: SqlDatabase, log: Log): SqliteUpkeep => {
  const wal = `${location}-wal`
  const thread = new StatementThread(driver, THREAD_IDLE_MS)
  let isRunning = false
  let [last, lastSize] = [0, 0]
  const checkpoint = async (): Promise<void> => {
    const { size, mtimeMs } = (await stat(wal).catch(() => undefined)) ?? { size: 0, mtimeMs: 0 }
    // The log is written from its start again after a checkpoint, so its size alone does not tell what is in it.
    const isDue = size - lastSize >= CHECKPOINT_BYTES || (mtimeMs > last && Date.now() - last > QUIET_MS)
    if (size < CHECKPOINT_BYTES || !isDue) return
    last = Date.now()
    lastSize = size
    // A log that is written without a break is never used up: then writers wait once for its end.
    const sql = `PRAGMA wal_checkpoint(${size > RESTART_BYTES ? 'RESTART' : 'PASSIVE'})`
    await thread
      .run({ path: location, sql, values: [], lockTimeoutMs: LOCK_TIMEOUT_MS })
      .catch((error: Error) =>
        log.warn({ file: location, reason: error.message }, 'checkpoint failed; the log keeps growing'),
      )
  }
  return {
    checkpoint: () => {
      if (isRunning) return
      isRunning = true
      void checkpoint().finally(() => {
        isRunning = false
      })
    },
    sync: async () => {
      const file = await open(wal, 'r+').catch(() => undefined)
      if (!file) return // a checkpoint has synced it and removed the log
      try {
        await file.datasync()
      } finally {
        await file.close()
      }
    },
    end: () => thread.end(),
  }
}
