import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'

const SETTLE_MS = 100 // a file is often written in several steps
const POLL_MS = 2000 // for file systems without notifications, and if the system has no watches left

/**
 * Calls `onChange` when a file was written, replaced, or its link points elsewhere; and once at the start, because the
 * file may have changed since it was read. Watches the folder, because editors replace files.
 */
export const watchFile = (file: string, onChange: () => void): (() => void) => {
  let identity: string | undefined
  let settling: NodeJS.Timeout | undefined
  let watcher: FSWatcher | undefined
  let isClosed = false

  const check = async (): Promise<void> => {
    const now = await identityOf(file)
    if (isClosed || now === undefined || now === identity) return
    identity = now
    onChange()
  }
  const checkSoon = (): void => {
    if (isClosed) return
    clearTimeout(settling)
    settling = setTimeout(() => void check(), SETTLE_MS)
  }

  void check()
  try {
    watcher = watch(dirname(file), { persistent: false }, checkSoon)
    watcher.on('error', () => watcher?.close()) // the poll continues
  } catch {
    // the folder cannot be watched: the poll finds changes
  }
  const poll = setInterval(() => {
    void identityOf(file).then(now => now !== undefined && now !== identity && checkSoon())
  }, POLL_MS)
  poll.unref()

  return () => {
    isClosed = true
    clearTimeout(settling)
    clearInterval(poll)
    watcher?.close()
  }
}

const identityOf = async (file: string): Promise<string | undefined> => {
  try {
    const { dev, ino, size, mtimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs].join(' ')
  } catch {
    return undefined
  }
}
