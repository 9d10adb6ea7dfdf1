import { readFile } from 'node:fs/promises'
import { type TokenPlace, tokensInDirectory, tokensInStore } from '../auth/token-place.ts'
import { findDaemon } from '../config/daemon-file.ts'
import { findConfig } from '../config/find-config.ts'
import { parseJsonText } from '../config/json-text.ts'
import { loadConfig } from '../config/load.ts'
import { isRawObject } from '../config/server-entries.ts'
import { SILENT } from '../telemetry/log.ts'
import { openServeState } from './serve-state.ts'

/** A place that must be closed. */
export interface OpenTokenPlace extends TokenPlace {
  close(): Promise<void>
}

/** The configuration a token is for: the named one, that of the daemon on this data directory, or the one that is found. */
export const configForTokens = async (named: string | undefined, data: string): Promise<string | undefined> => {
  if (named !== undefined) return named
  const daemon = await findDaemon(data)
  return daemon ? daemon.config : findConfig({ env: process.env })
}

/** Opens the place that a gateway with this configuration reads its tokens from. */
export const openTokenPlace = async (named: string | undefined, data: string): Promise<OpenTokenPlace> => {
  const file = await configForTokens(named, data)
  if (file === undefined || !(named !== undefined || (await namesStore(file)))) return inDataDirectory(data)
  const snapshot = await loadConfig({ file, env: process.env })
  if (!snapshot.store) return inDataDirectory(data)
  const state = await openServeState(snapshot, { data, isEphemeral: false, log: SILENT })
  if (!state) return inDataDirectory(data)
  return { ...tokensInStore(state.store.shared), close: () => state.store.close() }
}

const inDataDirectory = (data: string): OpenTokenPlace => ({ ...tokensInDirectory(data), close: async () => {} })

/** Tokens must not need a valid configuration that has nothing to do with them. */
const namesStore = async (file: string): Promise<boolean> => {
  try {
    const { value } = parseJsonText(await readFile(file, 'utf8'))
    return isRawObject(value) && value.store !== undefined
  } catch {
    return false
  }
}
