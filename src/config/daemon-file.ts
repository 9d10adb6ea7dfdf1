import { open, readFile, rm, stat } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { replaceFile } from './replace-file.ts'

/** The announcement by which programs of the same user find the daemon of a data directory. */
export interface Daemon {
  readonly origin: string
  readonly pid: number
  readonly token: string // valid while that process runs
  readonly isLasting?: boolean | undefined // it runs until it is stopped, on a port that stays the same
  readonly config?: string | undefined // the path of its configuration file; undefined: it has none
}

const fileIn = (data: string): string => join(data, 'daemon.json')
const lockIn = (data: string): string => join(data, 'daemon.starting')

export const announceDaemon = (data: string, daemon: Daemon): Promise<void> =>
  replaceFile(fileIn(data), `${JSON.stringify(daemon, null, 2)}\n`)

/**
 * Removes the announcement, unless another daemon has written one since. Announces the daemon that was there `before`
 * again if it still runs.
 */
export const withdrawDaemon = async (data: string, pid: number, before?: Daemon): Promise<void> => {
  const known = await readDaemon(data)
  if (known?.pid !== pid) return
  if (before && (await isRunning(before))) await announceDaemon(data, before)
  else await rm(fileIn(data), { force: true })
}

/** The daemon of this data directory, if it is alive. */
export const findDaemon = async (data: string): Promise<Daemon | undefined> => {
  const daemon = await readDaemon(data)
  return daemon && (await isRunning(daemon)) ? daemon : undefined
}

/** The daemon that announced itself and whose process exists. It may be another process: a request must show that. */
export const announcedDaemon = async (data: string): Promise<Daemon | undefined> => {
  const daemon = await readDaemon(data)
  return daemon && isAlive(daemon.pid) && URL.canParse(daemon.origin) ? daemon : undefined
}

const isRunning = async ({ pid, origin }: Daemon): Promise<boolean> => isAlive(pid) && (await doesAnswer(origin))

const HEALTH_TIMEOUT_MS = 2000

/** A killed daemon leaves its file, and its pid may belong to another process by now; so the daemon must answer, too. */
const doesAnswer = (origin: string): Promise<boolean> =>
  new Promise(resolve => {
    if (!URL.canParse(origin) || !origin.startsWith('http:')) return resolve(false)
    const request = get(`${origin}/healthz`, { timeout: HEALTH_TIMEOUT_MS, agent: false }, response => {
      response.resume()
      resolve(response.headers['content-type']?.startsWith('application/json') ?? false)
    })
    request.on('timeout', () => {
      resolve(true) // it may be busy; a second daemon would not help
      request.destroy()
    })
    request.on('error', () => resolve(false))
  })

/** Takes the lock for starting a daemon; undefined if another process holds it. The returned function releases it. */
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
      if (isRetry || !(await isStale(lock))) return undefined
      await removeStale(lock)
    }
  }
  return undefined
}

const STALE_LOCK_MS = 60_000 // a start takes a third of it at most

/** The process that held the lock is dead, or the lock is so old that its pid may be reused. An empty lock is being written. */
const isStale = async (lock: string): Promise<boolean> => {
  const held = await stat(lock).catch(() => undefined)
  if (!held) return true
  if (Date.now() - held.mtimeMs > STALE_LOCK_MS) return true
  const holder = Number(await readFile(lock, 'utf8').catch(() => ''))
  return holder !== 0 && !isAlive(holder)
}

/** Removes a stale lock. The marker names this lock only, so one process removes it, and none removes a later lock. */
const removeStale = async (lock: string): Promise<void> => {
  const before = await stat(lock).catch(() => undefined)
  if (!before || !(await isStale(lock))) return
  const marker = `${lock}.${before.ino}-${before.mtimeMs}`
  const marked = await open(marker, 'wx', 0o600).catch(() => undefined)
  if (!marked) return removeOldMarker(marker)
  await marked.close()
  const now = await stat(lock).catch(() => undefined)
  if (now?.ino === before.ino && now.mtimeMs === before.mtimeMs) await rm(lock, { force: true })
  await rm(marker, { force: true })
}

/** A marker that is still there was left by a process that died while it removed a lock. */
const removeOldMarker = async (marker: string): Promise<void> => {
  const made = await stat(marker).catch(() => undefined)
  if (made && Date.now() - made.mtimeMs > STALE_LOCK_MS) await rm(marker, { force: true })
}

const readDaemon = async (data: string): Promise<Daemon | undefined> => {
  try {
    const known = JSON.parse(await readFile(fileIn(data), 'utf8')) as Partial<Daemon> | null
    const isValid =
      typeof known?.origin === 'string' && typeof known.pid === 'number' && typeof known.token === 'string'
    return isValid ? (known as Daemon) : undefined
  } catch {
    return undefined // missing, or not a valid announcement
  }
}

/** Whether a process runs. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
