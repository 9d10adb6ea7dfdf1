/** The longest delay a Node.js timer takes; a longer one fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Resolves after `ms`, or as soon as the signal aborts. The timer does not keep the process alive. */
export const sleep = (ms: number, signal?: { onAbort(listener: () => void): () => void }): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(() => {
      stopListening?.()
      resolve()
    }, ms).unref()
    const stopListening = signal?.onAbort(() => {
      clearTimeout(timer)
      resolve()
    })
  })

/** Settles like `work`; if that takes longer than `ms`, like `late`, which may throw. Does not stop the work. */
export const within = <T, L = T>(ms: number, work: Promise<T>, late: () => L | Promise<L>): Promise<T | L> =>
  new Promise<T | L>((resolve, reject) => {
    const timer = setTimeout(() => {
      try {
        resolve(late())
      } catch (thrown) {
        reject(thrown)
      }
    }, ms).unref()
    work.then(
      result => {
        clearTimeout(timer)
        resolve(result)
      },
      error => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })

/** The bounds of an exponential backoff. */
export interface Backoff {
  readonly firstMs: number
  readonly longestMs: number
}

/** The delay after that many earlier failures: doubles each time, with a jitter of the upper half. */
export const backoffMs = ({ firstMs, longestMs }: Backoff, failures: number, random = Math.random()): number =>
  Math.min(longestMs, firstMs * 2 ** failures) * (0.5 + random / 2)
