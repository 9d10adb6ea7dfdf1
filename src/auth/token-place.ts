import { ensureDataDirectory } from '../config/data-dir.ts'
import type { Shared } from '../stores/state/state-store.ts'
import { changeSharedTokens, readSharedTokens } from './shared-tokens.ts'
import type { Token } from './token.ts'
import { changeTokens, readTokens, tokenFilePath } from './token-file.ts'

/** Where the tokens are: in the data directory, or in the store that replicas share. */
export interface TokenPlace {
  readonly name: string // in sentences
  /** Undefined if there never was a token. */
  read(): Promise<readonly Token[] | undefined>
  change(edit: (tokens: readonly Token[]) => readonly Token[]): Promise<void>
}

export const tokensInDirectory = (data: string): TokenPlace => {
  const file = tokenFilePath(data)
  return {
    name: file,
    read: () => readTokens(file),
    change: async edit => {
      await ensureDataDirectory(data)
      await changeTokens(file, edit)
    },
  }
}

export const tokensInStore = (shared: Shared): TokenPlace => ({
  name: 'the store of the replicas',
  read: () => readSharedTokens(shared),
  change: edit => changeSharedTokens(shared, edit),
})
