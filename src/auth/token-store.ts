import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SingleFlight } from '../std/single-flight.ts'
import type { Log } from '../telemetry/log.ts'
import type { Token } from './token.ts'
import { readTokens, TOKEN_FILE } from './token-file.ts'

const POLL_MS = 2000 // for file systems without change events, and if no watches are left
const UNREAD = 'unread' // equals no stamp of a file
const OTHERS_BITS = 0o077

/** The current tokens of a data directory; watches the file, even before it exists. */
export class TokenStore {
  readonly #file: string
  readonly #log: Log
  readonly #listeners: (() => void)[] = []
  #tokens: ReadonlyMap<string, Token> = new Map() // by hash
  #stamp: string | undefined
  #exists = false
  #lastError: string | undefined // the last one logged
  #watcher: FSWatcher | undefined
  #poll: NodeJS.Timeout | undefined
  readonly #reading = new SingleFlight()
  #isStale = false

  /** Reads the tokens and starts to watch the file; rejects with a ConfigError if it is invalid. */
  static async open(directory: string, log: Log): Promise<TokenStore> {
    const store = new TokenStore(join(directory, TOKEN_FILE), log)
    store.#watch()
    try {
      await store.#read()
    } catch (error) {
      store.close()
      throw error
    }
    return store
  }

  private constructor(file: string, log: Log) {
    this.#file = file
    this.#log = log
  }

  /** True once there was a file: without its last token the gateway must reject callers, not admit all. */
  get exists(): boolean {
    return this.#exists
  }

  get tokens(): ReadonlyMap<string, Token> {
    return this.#tokens
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  close(): void {
    this.#watcher?.close()
    clearInterval(this.#poll)
  }

  #watch(): void {
    this.#poll = setInterval(() => void this.#refreshIfChanged(), POLL_MS).unref()
    try {
      // The directory: the file itself is replaced, not written.
      this.#watcher = watch(dirname(this.#file), { persistent: false }, (_event, name) => {
        if (name === null || name === TOKEN_FILE) this.#refresh()
      })
      this.#watcher.on('error', error => this.#log.debug({ err: error }, 'token file is polled, not watched'))
    } catch (error) {
      this.#log.debug({ err: error }, 'token file is polled, not watched')
    }
  }

  async #refreshIfChanged(): Promise<void> {
    if ((await this.#readStamp()) !== this.#stamp) this.#refresh()
  }

  async #readStamp(): Promise<string | undefined> {
    const found = await stat(this.#file).catch(() => undefined)
    return found && `${found.ino} ${found.mtimeMs} ${found.size} ${found.mode}`
  }

  /** Reads the file again, after the read in progress if there is one. */
  #refresh(): void {
    this.#isStale = true
    void this.#reading.run(() => this.#readWhileStale())
  }

  async #readWhileStale(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false
      try {
        await this.#read()
      } catch (error) {
        this.#logError((error as Error).message)
      }
    }
  }

  /** Logs each reason once. The file is read again at the next poll: a revocation must not wait for another change. */
  #logError(reason: string): void {
    this.#stamp = UNREAD
    if (this.#lastError === reason) return
    this.#lastError = reason
    this.#log.error({ reason }, 'tokens could not be read; those read before stay valid')
  }

  async #read(): Promise<void> {
    // Before the content, so that a change in between is noticed.
    const stamp = await this.#readStamp()
    this.#stamp = stamp
    this.#warnOfMode(stamp)
    const tokens = await readTokens(this.#file)
    this.#lastError = undefined
    if (tokens === undefined && !this.#exists) return
    this.#exists = true
    this.#tokens = new Map((tokens ?? []).map(token => [token.hash, token]))
    this.#log.info({ tokens: this.#tokens.size }, 'tokens read')
    for (const listener of this.#listeners) listener()
  }

  #warnOfMode(stamp: string | undefined): void {
    const mode = Number(stamp?.split(' ')[3] ?? 0)
    if (process.platform !== 'win32' && mode & OTHERS_BITS)
      this.#log.warn(
        { file: this.#file, mode: (mode & 0o777).toString(8) },
        'others may read or write the tokens: chmod 600',
      )
  }
}
