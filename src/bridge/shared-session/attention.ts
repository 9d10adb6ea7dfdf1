import { Abort } from '../../protocol/cancellation.ts'
import type { Caller, Dispatch, Frame } from '../../protocol/exchange.ts'
import { compactCaller } from '../../protocol/kept-caller.ts'
import { Json } from '../../wire/json/json.ts'

const REST_MS = 30_000 // of listening on when nobody calls any more

const LISTEN_TO_ALL = Json.of({
  notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
})

interface Hooks {
  readonly dispatch: Dispatch
  heard(frame: Extract<Frame, { kind: 'notice' | 'question' }>): void
  /** The session says no more. */
  over(): void
}

/** A standing exchange of ours, on which everything arrives that a session says outside any call. */
export class Attention {
  readonly #hooks: Hooks
  #standing: Abort | undefined
  #rest: NodeJS.Timeout | undefined

  constructor(hooks: Hooks) {
    this.#hooks = hooks
  }

  get isPaid(): boolean {
    return this.#standing !== undefined
  }

  /** Listens from now on, as that caller. */
  pay(caller: Caller): void {
    clearTimeout(this.#rest)
    this.#rest = undefined
    if (this.#standing) return
    const standing = new Abort()
    this.#standing = standing
    this.#hooks.dispatch({
      kind: 'request',
      method: 'subscriptions/listen',
      params: LISTEN_TO_ALL,
      caller: compactCaller(caller), // it listens on when the call is over
      signal: standing,
      sink: frame => this.#take(frame, standing),
      isIdle: () => this.#rest !== undefined,
    })
  }

  /** Listens on although no call runs. */
  stay(): void {
    clearTimeout(this.#rest)
    this.#rest = undefined
  }

  /** Listens no more in a while, unless somebody calls. */
  rest(): void {
    clearTimeout(this.#rest)
    this.#rest = setTimeout(() => {
      this.#standing?.abort({ kind: 'gone' })
      this.#standing = undefined
    }, REST_MS)
    this.#rest.unref()
  }

  #take(frame: Frame, standing: Abort): void {
    if (frame.kind === 'question' || frame.kind === 'notice') return this.#hooks.heard(frame)
    if (this.#standing !== standing) return
    this.#standing = undefined
    clearTimeout(this.#rest) // it would keep the session in memory
    this.#hooks.over()
  }
}
