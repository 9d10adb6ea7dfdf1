import { open, readFile, rm, stat } from 'node:fs/promises'
import { get } from 'node:http'
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

/**
 * Takes the announcement back, unless another daemon has made one since. The daemon that was announced `before` is
 * announced again if it still runs.
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

const isRunning = async ({ pid, origin }: Daemon): Promise<boolean> => isAlive(pid) && (await isThere(origin))

const PATIENCE_MS = 2000

/** A daemon that was killed leaves its file, and its number goes to another process: somebody must answer, too. */
const isThere = (origin: string): Promise<boolean> =>
  new Promise(resolve => {
    if (!URL.canParse(origin) || !origin.startsWith('http:')) return resolve(false)
    const request = get(`${origin}/healthz`, { timeout: PATIENCE_MS, agent: false }, response => {
      response.resume()
      resolve(response.headers['content-type']?.startsWith('application/json') ?? false)
    })
    request.on('timeout', () => {
      resolve(true) // it may have a lot to do; a second daemon would not help
      request.destroy()
    })
    request.on('error', () => resolve(false))
  })

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
      if (isRetry || !(await isVoid(lock))) return undefined
      await takeAway(lock)
    }
  }
  return undefined
}

const LONGEST_CLAIM_MS = 60_000 // a start takes a third of it at most

/** Whoever held it died with it, or so long ago that its number may be somebody else's; an empty one is being written. */
const isVoid = async (lock: string): Promise<boolean> => {
  const claimed = await stat(lock).catch(() => undefined)
  if (!claimed) return true
  if (Date.now() - claimed.mtimeMs > LONGEST_CLAIM_MS) return true
  const holder = Number(await readFile(lock, 'utf8').catch(() => ''))
  return holder !== 0 && !isAlive(holder)
}

/** Removes a void claim. Its mark is its own, so that of many who found it one removes it, and nobody a later claim. */
const takeAway = async (lock: string): Promise<void> => {
  const before = await stat(lock).catch(() => undefined)
  if (!before || !(await isVoid(lock))) return
  const mark = `${lock}.${before.ino}-${before.mtimeMs}`
  const marked = await open(mark, 'wx', 0o600).catch(() => undefined)
  if (!marked) return forgetOld(mark)
  await marked.close()
  const now = await stat(lock).catch(() => undefined)
  if (now?.ino === before.ino && now.mtimeMs === before.mtimeMs) await rm(lock, { force: true })
  await rm(mark, { force: true })
}

/** A mark that stayed is of somebody who died between two lines above. */
const forgetOld = async (mark: string): Promise<void> => {
  const made = await stat(mark).catch(() => undefined)
  if (made && Date.now() - made.mtimeMs > LONGEST_CLAIM_MS) await rm(mark, { force: true })
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
