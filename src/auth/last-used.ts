import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../config/replace-file.ts'
import type { Log } from '../telemetry/log.ts'

const FLUSH_MS = 60_000
const FILE = 'token-use.json'

/** The time each token was used last, by id, as far as it was saved. */
export const readLastUsed = async (directory: string): Promise<Readonly<Record<string, string>>> => {
  try {
    const saved: unknown = JSON.parse(await readFile(join(directory, FILE), 'utf8'))
    const entries = Object.entries(saved ?? {}).filter(([, time]) => typeof time === 'string')
    return Object.fromEntries(entries) as Record<string, string>
  } catch {
    return {} // the times are informative only
  }
}

/** Records the use of tokens and saves it once a minute, in a file beside the token file, which is never changed for it. */
export const createLastUsed = (directory: string, isKnown: (id: string) => boolean, log: Log) => {
  const unsaved = new Map<string, number>()

  const flush = async (): Promise<void> => {
    if (unsaved.size === 0) return
    const recent = [...unsaved].map(([id, at]) => [id, new Date(at).toISOString()] as const)
    unsaved.clear()
    try {
      const all = Object.entries({ ...(await readLastUsed(directory)), ...Object.fromEntries(recent) })
      const known = Object.fromEntries(all.filter(([id]) => isKnown(id)))
      await replaceFile(join(directory, FILE), `${JSON.stringify(known)}\n`)
    } catch (error) {
      log.debug({ err: error }, 'last use of tokens could not be saved')
    }
  }

  /** With those that are not saved yet. */
  const readAll = async (): Promise<Readonly<Record<string, string>>> => ({
    ...(await readLastUsed(directory)),
    ...Object.fromEntries([...unsaved].map(([id, at]) => [id, new Date(at).toISOString()])),
  })

  const timer = setInterval(() => void flush(), FLUSH_MS).unref()
  return {
    record: (id: string, now: number): void => void unsaved.set(id, now),
    readAll,
    close: (): Promise<void> => {
      clearInterval(timer)
      return flush()
    },
  }
}
