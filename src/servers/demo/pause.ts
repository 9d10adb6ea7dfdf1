import type { Signal } from '../../protocol/cancellation.ts'

/** Waits, but not longer than the call lives. */
export const pause = (ms: number, signal: Signal): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(() => {
      forget()
      resolve()
    }, ms)
    const forget = signal.onAbort(() => {
      clearTimeout(timer)
      resolve()
    })
  })
