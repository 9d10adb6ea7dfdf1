import { sleep } from '../std/time.ts'
import { StateError } from '../stores/state/state-store.ts'

const FIRST_MS = 100 // between attempts
const LONGEST_MS = 2000
const ATTEMPTS = 300 // about ten minutes

/**
 * Tries to store tokens while the store is away: those that only this process knows would be lost with it, and the login, too. `attempt`
 * returns undefined if it has to be repeated because another replica was faster. `onAway` is called after each failure.
 */
export const untilStored = async <T>(
  attempt: () => Promise<{ readonly result: T } | undefined>,
  onAway: () => void,
): Promise<T> => {
  for (let count = 1; ; count++) {
    try {
      const done = await attempt()
      if (done) return done.result
      if (count >= ATTEMPTS) throw new StateError('away', 'Other replicas keep changing the login.')
    } catch (error) {
      const isAway = error instanceof StateError && error.reason === 'away'
      if (!isAway || count >= ATTEMPTS) throw error
      onAway()
    }
    await sleep(Math.min(FIRST_MS * count, LONGEST_MS))
  }
}
