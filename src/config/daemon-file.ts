import { open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { replacePrivateFile } from './private-file.ts'

/** How programs of the same user find the daemon that runs on a data directory. */
export interface Daemon {
  readonly origin: string
  readonly pid: number
  readonly token: string // good while that process lives
}

const fileIn = (data: string): string => join(data, 'daemon.json')
const lockIn = (data: string): string => join(data, 'daemon.starting')

export const announceDaemon = (data: string, daemon: Daemon): Promise<void> =>
  replacePrivateFile(fileIn(data), `${JSON.stringify(daemon, null, 2)}\n`)

/** Takes the announcement back, unless another daemon has made one since. */
export const withdrawDaemon = async (data: string, pid: number): Promise<void> => {
  const known = await readDaemon(data)
  if (known?.pid === pid) await rm(fileIn(data), { force: true })
}

/** The daemon of this data directory, if it is alive. */
export const findDaemon = async (data: string): Promise<Daemon | undefined> => {
  const daemon = await readDaemon(data)
  return daemon && isAlive(daemon.pid) ? daemon : undefined
}

/** Lets one process at a time start a daemon; undefined if another is at it. The returned function gives the turn back. */
export const claimStart = async (data: string): Promise<(() => Promise<void>) | undefined> => {
  const lock = lockIn(data)
  for (const isRetry of [false, true]) {
    try {
      const handle = await open(lock, 'wx', 0o600)
      await handle.writeFile(String(process.pid))
      await handle.close()
      return () => rm(lock, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      const holder = Number(await readFile(lock, 'utf8').catch(() => ''))
      // Whoever held it died with it; a file still empty is being written.
      if (isRetry || holder === 0 || isAlive(holder)) return undefined
      await rm(lock, { force: true })
    }
  }
  return undefined
}

const readDaemon = async (data: string): Promise<Daemon | undefined> => {
  try {
    const known = JSON.parse(await readFile(fileIn(data), 'utf8')) as Partial<Daemon> | null
    const isWhole =
      typeof known?.origin === 'string' && typeof known.pid === 'number' && typeof known.token === 'string'
    return isWhole ? (known as Daemon) : undefined
  } catch {
    return undefined // not there, or not ours
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
