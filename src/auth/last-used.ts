import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replacePrivateFile } from '../config/data-dir.ts'
import type { Log } from '../telemetry/log.ts'

const FLUSH_MS = 60_000
const FILE = 'token-use.json'

/** When each token was used last, by id, as far as it has been written down. */
export const readLastUsed = async (directory: string): Promise<Readonly<Record<string, string>>> => {
  try {
    const known: unknown = JSON.parse(await readFile(join(directory, FILE), 'utf8'))
    const entries = Object.entries(known ?? {}).filter(([, moment]) => typeof moment === 'string')
    return Object.fromEntries(entries) as Record<string, string>
  } catch {
    return {} // nice to know, and no more than that
  }
}

/** Notes the use of tokens and writes it down once a minute, beside the tokens: those are never touched for it. */
export class LastUsed {
  readonly #directory: string
  readonly #isKnown: (id: string) => boolean
  readonly #log: Log
  readonly #fresh = new Map<string, number>()
  readonly #timer: NodeJS.Timeout

  constructor(directory: string, isKnown: (id: string) => boolean, log: Log) {
    this.#directory = directory
    this.#isKnown = isKnown
    this.#log = log
    this.#timer = setInterval(() => void this.#flush(), FLUSH_MS)
    this.#timer.unref()
  }

  record(id: string, now: number): void {
    this.#fresh.set(id, now)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#flush()
  }

  async #flush(): Promise<void> {
    if (this.#fresh.size === 0) return
    const fresh = [...this.#fresh].map(([id, at]) => [id, new Date(at).toISOString()] as const)
    this.#fresh.clear()
    try {
      const all = Object.entries({ ...(await readLastUsed(this.#directory)), ...Object.fromEntries(fresh) })
      const known = Object.fromEntries(all.filter(([id]) => this.#isKnown(id)))
      await replacePrivateFile(join(this.#directory, FILE), `${JSON.stringify(known)}\n`)
    } catch (error) {
      this.#log.debug({ err: error }, 'the last use of tokens could not be written down')
    }
  }
}
