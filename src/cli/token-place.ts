import { readFile } from 'node:fs/promises'
import { changeSharedTokens, readSharedTokens } from '../auth/shared-tokens.ts'
import type { Token } from '../auth/token.ts'
import { changeTokens, readTokens, tokenFilePath } from '../auth/token-file.ts'
import { findDaemon } from '../config/daemon-file.ts'
import { ensureDataDirectory } from '../config/data-dir.ts'
import { findConfig } from '../config/find-config.ts'
import { parseJsonText } from '../config/json-text.ts'
import { loadConfig } from '../config/load.ts'
import { isRawObject } from '../config/server-entries.ts'
import { SILENT } from '../telemetry/log.ts'
import { openServeState } from './serve-state.ts'

/** Where the tokens are: in the data directory, or in the store that replicas share. */
export interface TokenPlace {
  readonly name: string // in sentences
  /** Undefined if there never was a token. */
  read(): Promise<readonly Token[] | undefined>
  change(edit: (tokens: readonly Token[]) => readonly Token[]): Promise<void>
  close(): Promise<void>
}

/** The configuration a token is for: the named one, that of the daemon on this data directory, or the one that is found. */
export const configForTokens = async (named: string | undefined, data: string): Promise<string | undefined> => {
  if (named !== undefined) return named
  const daemon = await findDaemon(data)
  return daemon ? daemon.config : findConfig({ env: process.env })
}

/** Opens the place that a gateway with this configuration reads its tokens from. */
export const openTokenPlace = async (named: string | undefined, data: string): Promise<TokenPlace> => {
  const file = await configForTokens(named, data)
  if (file === undefined || !(named !== undefined || (await namesStore(file)))) return inDataDirectory(data)
  const snapshot = await loadConfig({ file, env: process.env })
  if (!snapshot.store) return inDataDirectory(data)
  const state = await openServeState(snapshot, { data, isEphemeral: false, log: SILENT })
  if (!state) return inDataDirectory(data)
  const { shared } = state.store
  return {
    name: 'the store of the replicas',
    read: () => readSharedTokens(shared),
    change: edit => changeSharedTokens(shared, edit),
    close: () => state.store.close(),
  }
}

const inDataDirectory = (data: string): TokenPlace => {
  const file = tokenFilePath(data)
  return {
    name: file,
    read: () => readTokens(file),
    change: async edit => {
      await ensureDataDirectory(data)
      await changeTokens(file, edit)
    },
    close: async () => {},
  }
}

/** Tokens must not need a valid configuration that has nothing to do with them. */
const namesStore = async (file: string): Promise<boolean> => {
  try {
    const { value } = parseJsonText(await readFile(file, 'utf8'))
    return isRawObject(value) && value.store !== undefined
  } catch {
    return false
  }
}
