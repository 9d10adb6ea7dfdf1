import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'

const SETTLE_MS = 100 // a file is often written in several steps
const POLL_MS = 2000 // for file systems that announce nothing, and when the system has no watches left

/**
 * Calls `changed` when a file has become another: written, replaced, or reached by another link; and once at first, for
 * what happened to it since it was read. The folder is watched, because editors replace files.
 */
export const watchFile = (file: string, changed: () => void): (() => void) => {
  let stamp: string | undefined
  let settling: NodeJS.Timeout | undefined
  let watcher: FSWatcher | undefined
  let isClosed = false

  const look = async (): Promise<void> => {
    const now = await stampOf(file)
    if (isClosed || now === undefined || now === stamp) return
    stamp = now
    changed()
  }
  const soon = (): void => {
    if (isClosed) return
    clearTimeout(settling)
    settling = setTimeout(() => void look(), SETTLE_MS)
  }

  void look()
  try {
    watcher = watch(dirname(file), { persistent: false }, soon)
    watcher.on('error', () => watcher?.close()) // there is still the poll
  } catch {}
  const poll = setInterval(() => {
    void stampOf(file).then(now => now !== undefined && now !== stamp && soon())
  }, POLL_MS)
  poll.unref()

  return () => {
    isClosed = true
    clearTimeout(settling)
    clearInterval(poll)
    watcher?.close()
  }
}

const stampOf = async (file: string): Promise<string | undefined> => {
  try {
    const { dev, ino, size, mtimeNs } = await stat(file, { bigint: true })
    return [dev, ino, size, mtimeNs].join(' ')
  } catch {
    return undefined
  }
}
