import type { Signal } from '../../protocol/cancellation.ts'
import { Refused } from './paths.ts'

/** Lets only so many things run at once; the others wait their turn. */
export interface Slots {
  /** Resolves with the way to give the place back; throws Refused if too many wait or the wait is given up. */
  take(signal: Signal): Promise<() => void>
}

export const createSlots = (most: number, mostWaiting: number): Slots => {
  const waiting: (() => void)[] = []
  let taken = 0

  const giveBack = (): void => {
    const next = waiting.shift()
    if (next) next()
    else taken--
  }

  return {
    take: async signal => {
      if (taken < most) {
        taken++
        return giveBack
      }
      if (waiting.length >= mostWaiting) throw new Refused('Too much is going on; try again in a moment')
      await new Promise<void>((resolve, reject) => {
        const go = (): void => {
          forget()
          resolve()
        }
        const forget = signal.onAbort(() => {
          const at = waiting.indexOf(go)
          if (at >= 0) waiting.splice(at, 1)
          reject(new Refused('The call was cancelled'))
        })
        if (!signal.reason) waiting.push(go)
      })
      return giveBack
    },
  }
}
