import type { Abort } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import { sleep, within } from '../../std/time.ts'

const POLL_MS = 50

/** The calls in progress: a shutdown waits for them, then aborts them. */
export class ActiveCalls {
  // An array and not a Set: an outgrown Set table keeps what was deleted from it alive until a full collection.
  readonly #calls: Abort[] = []
  readonly #standing = new Set<Abort>() // `subscriptions/listen`: never ends by itself, so a shutdown does not wait for it
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

  /** Resolves when every call now in progress has ended, after `timeoutMs` at the latest. */
  async whenSettled(timeoutMs: number): Promise<void> {
    let left = [...this.#calls]
    for (const end = Date.now() + timeoutMs; left.length > 0 && Date.now() < end; await sleep(POLL_MS))
      left = left.filter(({ slot }) => slot >= 0)
  }

  /** Aborts the standing calls, waits up to `graceMs` for the others, then aborts those too. */
  async drain(graceMs: number): Promise<void> {
    for (const abort of [...this.#standing]) abort.abort({ kind: 'closing' })
    if (this.#calls.length > 0) {
      const idle = new Promise<void>(resolve => {
        this.#whenIdle = resolve
      })
      await within(graceMs, idle, () => {})
    }
    for (const abort of [...this.#calls]) abort.abort({ kind: 'closing' })
  }
}

/** The failure of a call that the gateway ends because it shuts down. */
export const SHUTTING_DOWN = rpcError('internal', 'The gateway is shutting down; send the request again')
