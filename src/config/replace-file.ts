import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'

/** A file that may hold secrets. */
export const OWNER_ONLY_FILE = 0o600

/** Replaces a file atomically: readers see the old text or the new one. Only the owner can read it, if no mode is given. */
export const replaceFile = async (file: string, text: string | Buffer, mode = OWNER_ONLY_FILE): Promise<void> => {
  const draft = `${file}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const handle = await open(draft, 'wx', mode)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}
