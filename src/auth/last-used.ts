import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replacePrivateFile } from '../config/data-dir.ts'
import type { Log } from '../telemetry/log.ts'

const FLUSH_MS = 60_000
const FILE = 'token-use.json'

/** The time each token was used last, by id, as far as it was saved. */
export const readLastUsed = async (directory: string): Promise<Readonly<Record<string, string>>> => {
  try {
    const saved: unknown = JSON.parse(await readFile(join(directory, FILE), 'utf8'))
    const entries = Object.entries(saved ?? {}).filter(([, time]) => typeof time === 'string')
    return Object.fromEntries(entries) as Record<string, string>
  } catch {
    return {} // the times are informative only
  }
}

/** Records the use of tokens and saves it once a minute, in a file beside the token file, which is never changed for it. */
export class LastUsed {
  readonly #directory: string
  readonly #isKnown: (id: string) => boolean
  readonly #log: Log
  readonly #unsaved = new Map<string, number>()
  readonly #timer: NodeJS.Timeout

  constructor(directory: string, isKnown: (id: string) => boolean, log: Log) {
    this.#directory = directory
    this.#isKnown = isKnown
    this.#log = log
    this.#timer = setInterval(() => void this.#flush(), FLUSH_MS).unref()
  }

  record(id: string, now: number): void {
    this.#unsaved.set(id, now)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#flush()
  }

  async #flush(): Promise<void> {
    if (this.#unsaved.size === 0) return
    const recent = [...this.#unsaved].map(([id, at]) => [id, new Date(at).toISOString()] as const)
    this.#unsaved.clear()
    try {
      const all = Object.entries({ ...(await readLastUsed(this.#directory)), ...Object.fromEntries(recent) })
      const known = Object.fromEntries(all.filter(([id]) => this.#isKnown(id)))
      await replacePrivateFile(join(this.#directory, FILE), `${JSON.stringify(known)}\n`)
    } catch (error) {
      this.#log.debug({ err: error }, 'last use of tokens could not be saved')
    }
  }
}
