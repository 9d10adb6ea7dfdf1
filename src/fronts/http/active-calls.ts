import type { Abort } from '../../protocol/cancellation.ts'

const LOOK_MS = 50

/** The exchanges now under way, so that a shutdown can wait for them and then end them. */
export class Active {
  // An array and not a Set: an outgrown Set table keeps what was deleted from it alive until a full collection.
  readonly #calls: Abort[] = []
  readonly #standing = new Set<Abort>() // never end by themselves, so nobody waits for them
  #whenIdle: (() => void) | undefined

  get size(): number {
    return this.#calls.length
  }

  add(abort: Abort, isStanding: boolean): void {
    if (isStanding) this.#standing.add(abort)
    else abort.slot = this.#calls.push(abort) - 1
  }

  delete(abort: Abort): void {
    if (abort.slot < 0) return void this.#standing.delete(abort)
    const last = this.#calls.pop()
    if (last && last !== abort) {
      this.#calls[abort.slot] = last
      last.slot = abort.slot
    }
    abort.slot = -1
    if (this.#calls.length === 0) this.#whenIdle?.()
  }

  /** Settles when every call that is under way now has ended, after `mostMs` at the latest. */
  settled(mostMs: number): Promise<void> {
    const left = new Set(this.#calls)
    const end = Date.now() + mostMs
    return new Promise(resolve => {
      const look = (): void => {
        for (const call of left) if (call.slot < 0) left.delete(call)
        if (left.size === 0 || Date.now() >= end) return resolve()
        setTimeout(look, LOOK_MS).unref()
      }
      look()
    })
  }

  /** Ends what stands, gives the calls `graceMs`, then ends them too. */
  async drain(graceMs: number): Promise<void> {
    for (const abort of [...this.#standing]) abort.abort({ kind: 'closing' })
    if (this.#calls.length > 0) {
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
