import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Log } from '../telemetry/log.ts'
import type { Token } from './token.ts'
import { readTokens, TOKEN_FILE } from './token-file.ts'

const POLL_MS = 2000 // for file systems that announce nothing, and when the system has no watches left
const UNREAD = 'unread' // no stamp of a file is this
const OTHERS_BITS = 0o077

/** The tokens of a data directory as they are now: the file is watched, also when it is not there yet. */
export class TokenStore {
  readonly #file: string
  readonly #log: Log
  readonly #listeners: (() => void)[] = []
  #tokens: ReadonlyMap<string, Token> = new Map() // by hash
  #stamp: string | undefined
  #exists = false
  #complaint: string | undefined // why the last reading failed
  #watcher: FSWatcher | undefined
  #poll: NodeJS.Timeout | undefined
  #reading: Promise<void> | undefined
  #isStale = false

  /** Reads the tokens and begins to watch; a file that is broken from the start is a ConfigError. */
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

  /** True once there has been a file: taking the last token away must lock the door, not open it. */
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
    this.#poll = setInterval(() => void this.#look(), POLL_MS)
    this.#poll.unref()
    try {
      // The directory, because the file is replaced and not written.
      this.#watcher = watch(dirname(this.#file), { persistent: false }, (_event, name) => {
        if (name === null || name === TOKEN_FILE) this.#refresh()
      })
      this.#watcher.on('error', error => this.#log.debug({ err: error }, 'tokens are polled, not watched'))
    } catch (error) {
      this.#log.debug({ err: error }, 'tokens are polled, not watched')
    }
  }

  async #look(): Promise<void> {
    if ((await this.#stampNow()) !== this.#stamp) this.#refresh()
  }

  async #stampNow(): Promise<string | undefined> {
    const found = await stat(this.#file).catch(() => undefined)
    return found && `${found.ino} ${found.mtimeMs} ${found.size} ${found.mode}`
  }

  /** Reads again, after the reading under way if there is one. */
  #refresh(): void {
    this.#isStale = true
    this.#reading ??= this.#readWhileStale().finally(() => {
      this.#reading = undefined
    })
  }

  async #readWhileStale(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false
      try {
        await this.#read()
      } catch (error) {
        this.#complain((error as Error).message)
      }
    }
  }

  /** Once for each reason: the file is read again at the next look, for a revocation must not wait for another change. */
  #complain(reason: string): void {
    this.#stamp = UNREAD
    if (this.#complaint === reason) return
    this.#complaint = reason
    this.#log.error({ reason }, 'tokens could not be read; those known before still count')
  }

  async #read(): Promise<void> {
    // Before the text, so that a change in between is seen as one.
    const stamp = await this.#stampNow()
    this.#stamp = stamp
    this.#warnOfMode(stamp)
    const tokens = await readTokens(this.#file)
    this.#complaint = undefined
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
