import { SqliteError, type SqliteFailure } from '../../../stores/sqlite.ts'
import { StoreError, type StoreFailure } from '../store.ts'

const isOfSystem = (error: unknown): error is Error => error instanceof Error && 'syscall' in error

const WORDS: Readonly<Partial<Record<SqliteFailure, readonly [StoreFailure, string]>>> = {
  busy: ['busy', 'is being written by another process for too long. Try again; if it stays so, end the other process'],
  full: ['full', 'cannot grow: the disk is full. Nothing of this call was stored. Make room and try again'],
  damaged: ['damaged', 'is damaged. It was left as it is. Move it away and put a backup in its place'],
  foreign: ['foreign', 'is not a memory database. It was left as it is. Move it away, or restore a backup'],
  unreachable: ['damaged', 'cannot be read or written. Check that the disk is there and the permissions are right'],
  readonly: ['full', 'is read-only. Check its permissions and those of its folder'],
}

/** What SQLite or the file system refused, said so that somebody can do something about it. */
export const inWords = (error: unknown, path: string): unknown => {
  if (isOfSystem(error))
    return new StoreError(
      'damaged',
      `The memory file ${path} cannot be opened or made. Check its folder and the permissions there (${error.message}).`,
      { cause: error },
    )
  if (!(error instanceof SqliteError)) return error
  const words = WORDS[error.kind]
  if (!words) return error
  return new StoreError(words[0], `The memory file ${path} ${words[1]} (${error.message}).`, { cause: error })
}
