import { basename, dirname } from 'node:path'
import { Worker } from 'node:worker_threads'

const WIDTH = 30
const REDRAW_MS = 100
const LINE_MS = 5000
const CLEAR_LINE = '\r\u001b[K'

/** Shows how far long work is: as a bar on a terminal, elsewhere as an occasional line. */
export interface Progress {
  at(done: number): void
  end(): void
}

interface ProgressOptions {
  readonly what: string
  readonly total?: number | undefined // undefined: unknown, so only the amount done is shown
  readonly shown: (amount: number) => string
  readonly out?: { readonly isTTY?: boolean | undefined; write(text: string): unknown }
  readonly now?: () => number
}

export const createProgress = (options: ProgressOptions): Progress => {
  const { what, total, shown, out = process.stderr, now = Date.now } = options
  const isTerminal = out.isTTY === true
  let last = isTerminal ? 0 : now() // work that takes less than LINE_MS leaves no line in a log
  let isDrawn = false

  const text = (done: number): string => {
    if (!isTerminal) return `${what}: ${shown(done)}${total ? ` of ${shown(total)}` : ''}\n`
    if (!total) return `${CLEAR_LINE}${what}  ${shown(done)}`
    const share = Math.min(1, done / total)
    const full = Math.round(share * WIDTH)
    const percent = `${Math.floor(share * 100)}%`.padStart(4)
    return `${CLEAR_LINE}${what}  [${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}] ${percent}  ${shown(done)}`
  }
  return {
    at: done => {
      if (now() - last < (isTerminal ? REDRAW_MS : LINE_MS)) return
      last = now()
      isDrawn = true
      out.write(text(done))
    },
    end: () => {
      if (isTerminal && isDrawn) out.write(CLEAR_LINE)
      isDrawn = false
    },
  }
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** A number of bytes with its unit. */
export const bytesText = (bytes: number): string => {
  const power = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10))
  const amount = bytes / 1024 ** power
  return `${power === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[power]}`
}

/** What the drawing thread needs; it reads the size of the copy from the folder. */
interface BackupFile {
  readonly folder: string
  readonly prefix: string
  readonly total: number
}

/** Shows how much of a backup is written. Drawn by a thread, because the backup blocks this one until it is done. */
export const watchBackup = (file: string, total: number): { end(): Promise<void> } => {
  if (!process.stderr.isTTY) return { end: () => Promise.resolve() }
  const workerData: BackupFile = { folder: dirname(file), prefix: `${basename(file)}.`, total }
  const worker = new Worker(`(${drawBackup.toString()})()`, { eval: true, workerData })
  worker.on('error', () => {}) // the backup does not depend on the bar
  return {
    end: async () => {
      await worker.terminate()
      process.stderr.write(CLEAR_LINE)
    },
  }
}

/** Runs in the thread, which gets it as text: it can use nothing of this module. */
const drawBackup = (): void => {
  type Load = <Module>(id: string) => Module
  const load = (process as unknown as { getBuiltinModule: Load }).getBuiltinModule
  const fs = load<typeof import('node:fs')>('node:fs')
  const { folder, prefix, total } = load<{ workerData: BackupFile }>('node:worker_threads').workerData
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
