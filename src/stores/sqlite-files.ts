import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { chmod, open } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

const MAGIC = 'SQLite format 3\0'

/** The length of the file according to its header, or 0 if the header does not say; a shorter file is truncated. */
const lengthInHeader = (path: string): number => {
  const header = Buffer.alloc(100)
  const file = openSync(path, 'r')
  try {
    readSync(file, header, 0, header.length, 0)
  } finally {
    closeSync(file)
  }
  // The length is valid only if it was written together with the latest change.
  const isCurrent = header.readUInt32BE(24) === header.readUInt32BE(92)
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC || !isCurrent) return 0
  const pageSize = header.readUInt16BE(16)
  return header.readUInt32BE(28) * (pageSize === 1 ? 65_536 : pageSize)
}

const isEmpty = (path: string): boolean => !existsSync(path) || statSync(path).size === 0

/** Whether the write-ahead log has pages; then the main file may be the shorter one. */
const hasLog = (path: string): boolean => !isEmpty(`${path}-wal`)

/** Whether there is no database yet, or only an empty file. */
export const isNewFile = (path: string): boolean => isEmpty(path) && !hasLog(path)

const CREATION_MS = 300

/** Says how much of a file is missing; undefined if it is whole. */
export const findTruncation = async (path: string): Promise<string | undefined> => {
  const isShort = () => !hasLog(path) && statSync(path).size < lengthInHeader(path)
  if (!isShort()) return undefined
  await delay(CREATION_MS) // Another process may be creating it.
  const [expected, size] = [lengthInHeader(path), statSync(path).size]
  return isShort() ? `is truncated: it has ${size} of ${expected} bytes` : undefined
}

const OWNER_ONLY = 0o600

/** Creates an empty file that only its owner can read; SQLite gives the log beside it the same mode. */
export const createPrivateFile = async (path: string): Promise<void> => (await open(path, 'a', OWNER_ONLY)).close()

export const makePrivate = async (path: string): Promise<void> => {
  if ((statSync(path).mode & 0o077) !== 0) await chmod(path, OWNER_ONLY).catch(() => undefined) // not the owner's process
}
