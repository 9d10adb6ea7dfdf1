import { ConfigError } from '../config/problems.ts'
import { FreshRead } from '../std/fresh-read.ts'
import type { Shared } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'
import type { Token } from './token.ts'
import { encodeTokens, parseTokens } from './token-file.ts'
import type { TokenStore } from './token-store.ts'

/** The document with the tokens of all replicas, and the topic that is notified when it changes. */
const DOCUMENT = 'tokens'
const WHERE = 'the token document of the store'
const RETRY_MS = 500 // until the tokens could be read once
const ATTEMPTS = 20 // to write it while others change it, too

type Documents = Pick<Shared, 'document' | 'writeDocument' | 'on'>

/** The tokens in the store; undefined if there never was one. Throws a ConfigError, without the content, if it is invalid. */
export const readSharedTokens = async (documents: Documents): Promise<readonly Token[] | undefined> => {
  const found = await documents.document(DOCUMENT)
  return found && parseTokens(WHERE, found.body.toString())
}

/** Changes the tokens in the store. A change by another program in between is kept. */
export const changeSharedTokens = async (
  documents: Documents,
  change: (tokens: readonly Token[]) => readonly Token[],
): Promise<void> => {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const found = await documents.document(DOCUMENT)
    const tokens = change(found ? parseTokens(WHERE, found.body.toString()) : [])
    if (await documents.writeDocument(DOCUMENT, Buffer.from(encodeTokens(tokens)), found?.version ?? 0)) return
  }
  throw new ConfigError('other programs keep changing the tokens in the store; try again')
}

/**
 * Reads the tokens that all replicas share, and follows their changes. `former` are those of the data directory: they
 * become the first ones of the store if it has none. While the store cannot be read, the tokens known before stay valid.
 */
export const openSharedTokenStore = async (
  documents: Documents,
  log: Log,
  former: readonly Token[] | undefined,
): Promise<TokenStore> => {
  const listeners: (() => void)[] = []
  let tokens: ReadonlyMap<string, Token> = new Map()
  let exists = false
  let isUnread = true // there may be tokens: until they can be read, callers are rejected
  let version = 0
  let lastError: string | undefined // the last one logged

  /** The tokens of the data directory become the first ones of the store. */
  const copyFormer = async (first: readonly Token[]): Promise<void> => {
    if ((await documents.document(DOCUMENT)) !== undefined) return
    if (await documents.writeDocument(DOCUMENT, Buffer.from(encodeTokens(first)), 0))
      log.info({ tokens: first.length }, 'tokens of the data directory copied to the store')
  }

  const read = async (): Promise<void> => {
    if (isUnread && former !== undefined) await copyFormer(former)
    const found = await documents.document(DOCUMENT)
    lastError = undefined
    isUnread = false
    if (!found || found.version === version) return
    tokens = new Map(parseTokens(WHERE, found.body.toString()).map(token => [token.hash, token]))
    exists = true
    version = found.version
    log.info({ tokens: tokens.size }, 'tokens read')
    for (const listener of listeners) listener()
  }

  const logError = (reason: string): void => {
    if (lastError === reason) return
    lastError = reason
    log.error({ reason }, 'tokens could not be read from the store; those read before stay valid')
  }

  const reading = new FreshRead(() =>
    read().catch((error: unknown) => logError(error instanceof Error ? error.message : String(error))),
  )
  /** Reads them again. False if that failed. */
  const refresh = async (): Promise<boolean> => {
    await reading.run()
    return lastError === undefined
  }

  const stopListening = documents.on(DOCUMENT, () => void refresh())
  const retry = setInterval(() => (isUnread ? void refresh() : clearInterval(retry)), RETRY_MS).unref()
  const close = (): void => {
    stopListening()
    clearInterval(retry)
  }

  try {
    await read()
  } catch (error) {
    if (error instanceof ConfigError) {
      close()
      throw error
    }
    logError(error instanceof Error ? error.message : String(error))
  }
  return {
    get exists() {
      return exists || isUnread
    },
    get isUnread() {
      return isUnread
    },
    get tokens() {
      return tokens
    },
    onChange: listener => void listeners.push(listener),
    reload: refresh,
    close,
  }
}
