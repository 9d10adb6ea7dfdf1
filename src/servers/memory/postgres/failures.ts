import { PostgresError, type PostgresFailure } from '../../../stores/postgres-failures.ts'
import { StoreError, type StoreFailure } from '../store.ts'

const WORDS: Readonly<Partial<Record<PostgresFailure, readonly [StoreFailure, string]>>> = {
  conflict: ['busy', 'is being written by others at the same places for too long. Nothing was stored; try again'],
  busy: ['busy', 'kept us waiting for too long. Nothing was stored; try again'],
  full: ['full', 'cannot grow. Nothing of this call was stored. Make room and try again'],
  unreachable: ['busy', 'cannot be reached. Nothing was stored; check that it runs, and try again'],
  unsure: [
    'busy',
    'was lost while it stored this. Look whether it is there, or try again: the same episode is stored once',
  ],
  limit: ['invalid', 'cannot hold something as long as this. Nothing was stored; give shorter names'],
  denied: ['foreign', 'refuses us. Check the user, the password and the rights'],
}

/** What PostgreSQL refused, said so that somebody can do something about it. */
export const inWords = (error: unknown, place: string): unknown => {
  if (!(error instanceof PostgresError)) return error
  const words = WORDS[error.kind]
  if (!words) return error
  return new StoreError(words[0], `The memory database ${place} ${words[1]} (${error.message}).`, { cause: error })
}
