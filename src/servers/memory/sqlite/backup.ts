import { randomUUID } from 'node:crypto'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StoreError } from '../store.ts'
import type { Context } from './context.ts'
import { make } from './open.ts'

const flush = async (path: string): Promise<void> => {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Writes a consistent, compact copy while the store is in use; under its name there is never half a backup. */
export const backUp = async ({ db }: Context, path: string): Promise<{ readonly bytes: number }> => {
  const draft = `${path}.${randomUUID()}.part`
  try {
    await make(draft)
    await db.aside('VACUUM INTO ?', draft)
    await flush(draft)
    const { size } = await stat(draft)
    await rename(draft, path)
    await flush(dirname(path))
    return { bytes: size }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new StoreError(
      'invalid',
      `No backup could be written to ${path}: ${reason}. Name a file in a folder that is there.`,
      {
        cause: error,
      },
    )
  } finally {
    await rm(draft, { force: true }).catch(() => undefined)
  }
}
