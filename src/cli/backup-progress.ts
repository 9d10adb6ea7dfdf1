import { basename, dirname } from 'node:path'
import { Worker } from 'node:worker_threads'

/** What the thread that draws needs to know; everything else it finds in the folder. */
interface Watched {
  readonly folder: string
  readonly prefix: string
  readonly total: number
}

/** Shows how much of a copy is written, from a thread of its own: the copying keeps ours busy from beginning to end. */
export const watchBackup = (file: string, total: number): { end(): Promise<void> } => {
  if (!process.stderr.isTTY) return { end: () => Promise.resolve() }
  const workerData: Watched = { folder: dirname(file), prefix: `${basename(file)}.`, total }
  const worker = new Worker(`(${draw.toString()})()`, { eval: true, workerData })
  worker.on('error', () => {}) // a bar that cannot be drawn is no reason to fail
  return {
    end: async () => {
      await worker.terminate()
      process.stderr.write('\r\u001b[K')
    },
  }
}

/** Stands for itself: it is handed to the thread as text. */
const draw = (): void => {
  type Load = <Module>(id: string) => Module
  const load = (process as unknown as { getBuiltinModule: Load }).getBuiltinModule
  const fs = load<typeof import('node:fs')>('node:fs')
  const { folder, prefix, total } = load<{ workerData: Watched }>('node:worker_threads').workerData
  const sizeNow = (): number => {
    const part = fs.readdirSync(folder).find(name => name.startsWith(prefix) && name.endsWith('.part'))
    return part === undefined ? 0 : fs.statSync(`${folder}/${part}`).size
  }
  setInterval(() => {
    const share = Math.min(1, sizeNow() / total)
    const full = Math.round(share * 30)
    fs.writeSync(2, `\r\u001b[Kbacking up  [${'#'.repeat(full)}${'.'.repeat(30 - full)}] ${Math.floor(share * 100)}%`)
  }, 100)
}
