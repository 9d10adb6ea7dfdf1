/** The part of a cancellation signal that a waiting caller needs. */
interface CancelSignal {
  readonly reason: unknown
  onAbort(listener: () => void): () => void
}

/** Why a semaphore admitted no caller: too many callers wait already, or this one has stopped waiting. */
export class NotAcquired extends Error {
  readonly reason: 'full' | 'cancelled'

  constructor(reason: 'full' | 'cancelled') {
    super(reason === 'full' ? 'Too many callers wait already' : 'The wait was cancelled')
    this.reason = reason
  }
}

/** Admits a limited number of callers at once; the others wait in order. */
export class Semaphore {
  readonly #limit: number
  readonly #maxWaiting: number
  readonly #waiting: (() => void)[] = []
  #admitted = 0

  constructor(limit: number, maxWaiting = Number.POSITIVE_INFINITY) {
    this.#limit = limit
    this.#maxWaiting = maxWaiting
  }

  /** Resolves with a function that releases the slot; calling it again has no effect. Rejects with NotAcquired. */
  async acquire(signal?: CancelSignal): Promise<() => void> {
    if (this.#admitted < this.#limit) this.#admitted++
    else await this.#wait(signal)
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      const next = this.#waiting.shift()
      if (next)
        next() // the slot is handed over
      else this.#admitted--
    }
  }

  #wait(signal: CancelSignal | undefined): Promise<void> {
    if (this.#waiting.length >= this.#maxWaiting) throw new NotAcquired('full')
    if (signal?.reason) throw new NotAcquired('cancelled')
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        stopListening?.()
        resolve()
      }
      const stopListening = signal?.onAbort(() => {
        const at = this.#waiting.indexOf(admit)
        if (at >= 0) this.#waiting.splice(at, 1)
        reject(new NotAcquired('cancelled'))
      })
      this.#waiting.push(admit)
    })
  }
}
