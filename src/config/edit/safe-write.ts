import { copyFile, mkdir, readFile, realpath, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigError } from '../problems.ts'
import { OWNER_ONLY_FILE, replaceFile } from '../replace-file.ts'

const OWNER_WRITES = 0o200

/** Where the text before the last change is kept. */
export const backupOf = (file: string): string => `${file}.bak`

/** The text of a file that is about to be edited; undefined if there is none. */
export const readForEdit = async (file: string): Promise<string | undefined> => {
  try {
    const bytes = await readFile(file)
    if (bytes.includes(0)) throw new ConfigError(`${file} is not UTF-8 text; it was not changed`)
    return bytes.toString('utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    if (cause instanceof ConfigError) throw cause
    throw new ConfigError(`cannot read ${file}: ${(cause as Error).message}`)
  }
}

/**
 * Replaces the text of a file atomically and keeps the old one beside it. Links are followed, the permissions stay.
 * `before` is the text the change was made from: a file that another program has changed since is left alone.
 * Returns the path of the backup: one for each change, or only the last.
 */
export const writeEdited = async (
  file: string,
  before: string | undefined,
  after: string,
  backups: 'each' | 'last',
): Promise<string | undefined> => {
  if ((await readForEdit(file)) !== before)
    throw new ConfigError(`${file} was changed by another program at the same time; try again`)
  const target = await realpath(file).catch(() => file)
  const mode = await stat(target).then(
    found => found.mode & 0o777,
    () => OWNER_ONLY_FILE,
  )
  if ((mode & OWNER_WRITES) === 0) throw new ConfigError(`${file} is read-only; make it writable, and try again`)
  await mkdir(dirname(target), { recursive: true })
  const name = backups === 'each' ? `${file}.${timestamp(new Date())}` : file
  const backup = before === undefined ? undefined : backupOf(name)
  if (backup !== undefined) await copyFile(target, backup)
  await replaceFile(target, after, mode)
  return backup
}

/** Like 20261116-101500-123: sorts by time, and is a valid name everywhere. */
const timestamp = (now: Date): string => now.toISOString().replace(/[-:Z]/g, '').replace(/[T.]/g, '-')
