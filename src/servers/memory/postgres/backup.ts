import { randomUUID } from 'node:crypto'
import { open, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

const sync = async (path: string): Promise<void> => {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Writes one tenant's memory as the lines of an export, which `importLines` of any driver reads; never half a file under its name. */
export const backUp = async (lines: AsyncIterable<string>, path: string): Promise<{ readonly bytes: number }> => {
  const draft = `${path}.${randomUUID()}.part`
  try {
    const file = await open(draft, 'wx', 0o600)
    try {
      for await (const line of lines) await file.write(`${line}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    const { size } = await stat(draft)
    await rename(draft, path)
    await sync(dirname(path))
    return { bytes: size }
  } finally {
    await rm(draft, { force: true })
  }
}
