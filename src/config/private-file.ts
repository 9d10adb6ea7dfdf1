import { randomBytes } from 'node:crypto'
import { open, rename, rm } from 'node:fs/promises'

const OWNER_ONLY = 0o600

/** Replaces a file at once: readers see the old text or the new one, and nobody but the owner sees either. */
export const replacePrivateFile = async (file: string, text: string): Promise<void> => {
  const draft = `${file}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const handle = await open(draft, 'wx', OWNER_ONLY)
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
