import { type FSWatcher, watch } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { FreshRead } from '../std/fresh-read.ts'
import type { Log } from '../telemetry/log.ts'
import type { ApiTokens, Token } from './token.ts'
import { readTokens, TOKEN_FILE } from './token-file.ts'

const POLL_MS = 2000 // for file systems without change events, and if no watches are left
const UNREAD = 'unread' // equals no stamp of a file
const OTHERS_BITS = 0o077

/** The current tokens of a data directory. */
export interface TokenStore {
  /** True once there was a file: without its last token the gateway must reject callers, not admit all. */
  readonly exists: boolean
  readonly isUnread?: boolean // there may be tokens that could not be read yet
  readonly tokens: ReadonlyMap<string, Token> // by hash
  onChange(listener: () => void): void
  /** Reads the tokens now; resolves when the listeners have been called. False if they could not be read. */
  reload(): Promise<boolean>
  close(): void
}

/** The API tokens of users, which can be read again. */
export interface StoredApiTokens extends ApiTokens {
  /** Finds out about tokens that are not known yet. Rejects with a StateError if the tokens cannot be read now. */
  refresh(): Promise<void>
}

/** Reads the tokens and watches their file, even before it exists; rejects with a ConfigError if it is invalid. */
export const openTokenStore = async (directory: string, log: Log): Promise<TokenStore> => {
  const file = join(directory, TOKEN_FILE)
  const listeners: (() => void)[] = []
  let tokens: ReadonlyMap<string, Token> = new Map()
  let exists = false
  let stamp: string | undefined = UNREAD
  let lastError: string | undefined // the last one logged

  const readStamp = async (): Promise<string | undefined> => {
    const found = await stat(file).catch(() => undefined)
    return found && `${found.ino} ${found.mtimeMs} ${found.size} ${found.mode}`
  }

  const read = async (): Promise<void> => {
    const before = stamp
    stamp = await readStamp() // before the content, so that a change in between is noticed
    if (stamp === before) return
    warnOfMode(file, stamp, log)
    const found = await readTokens(file)
    lastError = undefined
    if (found === undefined && !exists) return
    exists = true
    tokens = new Map((found ?? []).map(token => [token.hash, token]))
    log.info({ tokens: tokens.size }, 'tokens read')
    for (const listener of listeners) listener()
  }

  /** Logs each reason once. The file is read again at the next poll: a revocation must not wait for another change. */
  const logError = (reason: string): void => {
    stamp = UNREAD
    if (lastError === reason) return
    lastError = reason
    log.error({ reason }, 'tokens could not be read; those read before stay valid')
  }

  const reading = new FreshRead(() => read().catch((error: Error) => logError(error.message)))
  /** Reads the file if it has changed. False if that failed. */
  const refresh = async (): Promise<boolean> => {
    await reading.run()
    return lastError === undefined
  }

  const poll = setInterval(() => void refresh(), POLL_MS).unref()
  const watcher = watchFolder(directory, () => void refresh(), log)
  const close = (): void => {
    watcher?.close()
    clearInterval(poll)
  }
  try {
    await read()
  } catch (error) {
    close()
    throw error
  }
  return {
    get exists() {
      return exists
    },
    get tokens() {
      return tokens
    },
    onChange: listener => void listeners.push(listener),
    reload: refresh,
    close,
  }
}

/** Watches the folder, because the file itself is replaced, not written. */
const watchFolder = (folder: string, changed: () => void, log: Log): FSWatcher | undefined => {
  const pollOnly = (error: unknown): void => log.debug({ err: error }, 'token file is polled, not watched')
  try {
    const watcher = watch(folder, { persistent: false }, (_event, name) => {
      if (name === null || name === TOKEN_FILE) changed()
    })
    return watcher.on('error', pollOnly)
  } catch (error) {
    pollOnly(error)
    return undefined
  }
}

const warnOfMode = (file: string, stamp: string | undefined, log: Log): void => {
  const mode = Number(stamp?.split(' ')[3] ?? 0)
  if (process.platform !== 'win32' && mode & OTHERS_BITS)
    log.warn({ file, mode: (mode & 0o777).toString(8) }, 'others may read or write the tokens: chmod 600')
}
