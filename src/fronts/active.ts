import type { Abort } from '../protocol/abort.ts'

/** The exchanges now under way, so that a shutdown can wait for them and then end them. */
export class Active {
  readonly #calls = new Set<Abort>()
  readonly #standing = new Set<Abort>() // never end by themselves, so nobody waits for them
  #whenIdle: (() => void) | undefined

  get size(): number {
    return this.#calls.size
  }

  add(abort: Abort, isStanding: boolean): void {
    if (isStanding) this.#standing.add(abort)
    else this.#calls.add(abort)
  }

  delete(abort: Abort): void {
    this.#standing.delete(abort)
    if (this.#calls.delete(abort) && this.#calls.size === 0) this.#whenIdle?.()
  }

  /** Ends what stands, gives the calls `graceMs`, then ends them too. */
  async drain(graceMs: number): Promise<void> {
    for (const abort of [...this.#standing]) abort.abort({ kind: 'closing' })
    if (this.#calls.size > 0) {
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, graceMs)
        this.#whenIdle = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    for (const abort of [...this.#calls]) abort.abort({ kind: 'closing' })
  }
}
