import type { Stats } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../config/replace-file.ts'
import type { Log } from '../telemetry/log.ts'

/** Keeps texts across restarts, each under a key of letters, digits, `-` and `_`. */
export interface LearntStore {
  /** Undefined: there is none that can be read. */
  load(key: string): Promise<Buffer | undefined>
  /** Never rejects: what cannot be stored is learnt again after a restart. */
  save(key: string, bytes: Buffer): Promise<void>
}

const FOLDER = 'lists' // in the data directory
const ENDING = '.json'
const MIB = 1024 * 1024
const MOST_BYTES_EACH = 16 * MIB
const MOST_BYTES = 128 * MIB
const UNUSED_MS = 30 * 24 * 60 * 60_000 // a file that no gateway has used for so long is deleted
const DRAFT_MS = 60 * 60_000 // a draft this old was left by a gateway that was killed

/** Keeps each text in a file of its own, so that gateways that share a data directory do not undo each other's changes. */
export const createLearntFiles = (data: string, log: Log): LearntStore => {
  const folder = join(data, FOLDER)
  const fileOf = (key: string): string => join(folder, key + ENDING)
  let hasFailed = false

  const reportOnce = (error: unknown): void => {
    if (!hasFailed)
      log.warn({ err: error, folder }, 'lists of servers were not stored: they are read again after a restart')
    hasFailed = true
  }

  return {
    load: async key => {
      try {
        if ((await stat(fileOf(key))).size > MOST_BYTES_EACH) return undefined
        const bytes = await readFile(fileOf(key))
        const now = new Date()
        void utimes(fileOf(key), now, now).catch(() => {}) // keeps it from being deleted as unused
        return bytes
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
          log.warn({ err: error, file: fileOf(key) }, 'stored lists of a server were ignored')
        return undefined
      }
    },
    save: async (key, bytes) => {
      try {
        await mkdir(folder, { mode: 0o700, recursive: true })
        if (bytes.length > MOST_BYTES_EACH) await rm(fileOf(key), { force: true })
        else await replaceFile(fileOf(key), bytes)
        await deleteOld(folder, Date.now())
      } catch (error) {
        reportOnce(error)
      }
    },
  }
}

interface StoredFile {
  readonly path: string
  readonly stats: Stats
}

const deleteOld = async (folder: string, now: number): Promise<void> => {
  const names = await readdir(folder)
  const found = await Promise.all(
    names.map(async (name): Promise<StoredFile[]> => {
      const path = join(folder, name)
      const stats = await stat(path).catch(() => undefined) // another gateway may have deleted it
      return stats?.isFile() ? [{ path, stats }] : []
    }),
  )
  const files = found.flat().sort((a, b) => b.stats.mtimeMs - a.stats.mtimeMs)
  let bytes = 0
  for (const { path, stats } of files) {
    bytes += stats.size
    const longestMs = path.endsWith(ENDING) ? UNUSED_MS : DRAFT_MS
    if (now - stats.mtimeMs > longestMs || bytes > MOST_BYTES) await rm(path, { force: true })
  }
}
