const WIDTH = 30
const REDRAW_MS = 100
const LINE_MS = 5000

/** Shows how far long work is: a bar where somebody watches, now and then a line elsewhere. */
export interface Progress {
  at(done: number): void
  end(): void
}

interface Options {
  readonly what: string
  readonly total?: number | undefined // unknown: only what is done is shown
  readonly shown: (amount: number) => string
  readonly out?: { readonly isTTY?: boolean | undefined; write(text: string): unknown }
  readonly now?: () => number
}

export const createProgress = ({ what, total, shown, out = process.stderr, now = Date.now }: Options): Progress => {
  const isWatched = out.isTTY === true
  let last = isWatched ? 0 : now() // of a line somebody reads later, the first is worth waiting for
  let isDrawn = false
  return {
    at: done => {
      if (now() - last < (isWatched ? REDRAW_MS : LINE_MS)) return
      last = now()
      isDrawn = true
      out.write(
        isWatched ? `\r\u001b[K${barLine(what, done, total, shown)}` : `${plainLine(what, done, total, shown)}\n`,
      )
    },
    end: () => {
      if (isWatched && isDrawn) out.write('\r\u001b[K')
      isDrawn = false
    },
  }
}

type Shown = Options['shown']

const barLine = (what: string, done: number, total: number | undefined, shown: Shown): string => {
  if (!total) return `${what}  ${shown(done)}`
  const share = Math.min(1, done / total)
  const full = Math.round(share * WIDTH)
  return `${what}  [${'#'.repeat(full)}${'.'.repeat(WIDTH - full)}] ${percent(share)}  ${shown(done)}`
}

const plainLine = (what: string, done: number, total: number | undefined, shown: Shown): string =>
  `${what}: ${shown(done)}${total ? ` of ${shown(total)}` : ''}`

const percent = (share: number): string => `${Math.floor(share * 100)}%`.padStart(4)

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** Bytes as people read them. */
export const bytesText = (bytes: number): string => {
  const power = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10))
  const amount = bytes / 1024 ** power
  return `${power === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[power]}`
}
