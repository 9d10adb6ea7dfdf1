import type { Abort } from '../../protocol/cancellation.ts'
import { rpcError } from '../../protocol/errors.ts'
import { Quota } from '../../protocol/quota.ts'
import { SlotList } from '../../std/slot-list.ts'
import { sleep, within } from '../../std/time.ts'
import { Json } from '../../wire/json/json.ts'

const POLL_MS = 50
const TOTAL_SHARES = 10 // number of principals that can all use their whole quota

/** The calls in progress: a shutdown waits for them, then aborts them. */
export class ActiveCalls {
  readonly #calls = new SlotList<Abort>()
  readonly #listening: Quota<Abort> // `subscriptions/listen`: never ends by itself, so a shutdown does not wait for it
  #whenIdle: (() => void) | undefined

  /** One owner has at most `listensPerOwner` of `subscriptions/listen`; beyond them its oldest completes. */
  constructor(listensPerOwner: number) {
    this.#listening = new Quota({ perOwner: listensPerOwner, total: listensPerOwner * TOTAL_SHARES })
  }

  get size(): number {
    return this.#calls.size
  }

  add(abort: Abort): void {
    this.#calls.add(abort)
  }

  addListening(abort: Abort, owner: string): void {
    for (const evicted of this.#listening.add(owner, abort)) evicted.abort({ kind: 'closing' })
  }

  delete(abort: Abort): void {
    if (!this.#calls.delete(abort)) return this.#listening.delete(abort)
    if (this.#calls.size === 0) this.#whenIdle?.()
  }

  /** Resolves when every call now in progress has ended, after `timeoutMs` at the latest. */
  async whenSettled(timeoutMs: number): Promise<void> {
    let left = this.#calls.entries
    for (const end = Date.now() + timeoutMs; left.length > 0 && Date.now() < end; await sleep(POLL_MS))
      left = left.filter(({ slot }) => slot >= 0)
  }

  /** Aborts `subscriptions/listen`, waits up to `graceMs` for the other calls, then aborts those too. */
  async drain(graceMs: number): Promise<void> {
    for (const abort of this.#listening.items) abort.abort({ kind: 'closing' })
    if (this.#calls.size > 0) {
      const idle = new Promise<void>(resolve => {
        this.#whenIdle = resolve
      })
      await within(graceMs, idle, () => {})
    }
    for (const abort of this.#calls.entries) abort.abort({ kind: 'closing' })
  }
}

/** The failure of a call that the gateway ends because it shuts down. */
export const SHUTTING_DOWN = rpcError(
  'internal',
  'The gateway is shutting down and has given up this request; send it again if that is safe',
  Json.of({ reason: 'gateway_stopping' }),
)
