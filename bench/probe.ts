// Loaded into a process before its program (`--import`): says on its IPC channel what memory it holds.
import { setImmediate } from 'node:timers/promises'
import type { Memory } from './probed.ts'

const collect = async (): Promise<Memory> => {
  // Twice, with a turn between: finalizers of the first free what the second collects.
  for (let pass = 0; pass < 2; pass++) {
    globalThis.gc?.()
    await setImmediate()
  }
  const { rss, heapUsed } = process.memoryUsage()
  return { rss, heap: heapUsed }
}

process.on('message', () => void collect().then(memory => process.send?.(memory)))
process.once('disconnect', () => process.exit())
