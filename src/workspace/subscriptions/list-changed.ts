import { deliver } from '../../protocol/deliver.ts'
import type { Sink } from '../../protocol/exchange.ts'
import { type ChangingList, LIST_CHANGES } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'

interface NotifierOptions {
  readonly sink: Sink
  readonly wanted: ReadonlySet<ChangingList>
  readonly coalesceMs: number
  readonly hashOf: (list: ChangingList) => string // of the list as the listener sees it
}

/** Sends `list_changed` notifications to one listener: coalesced, and only if the visible list differs. */
export class ListChangedNotifier {
  readonly #options: NotifierOptions
  readonly #notified = new Map<ChangingList, string>() // the hash that the listener may know
  readonly #scheduled = new Map<ChangingList, boolean>() // true: notify even if the hash is equal
  #timer: NodeJS.Timeout | undefined
  #isBlocked = false // by backpressure
  #isOver = false

  constructor(options: NotifierOptions) {
    this.#options = options
    for (const list of options.wanted) this.#notified.set(list, options.hashOf(list))
  }

  schedule(list: ChangingList, isCertain: boolean): void {
    if (!this.#options.wanted.has(list) || this.#isOver) return
    this.#scheduled.set(list, isCertain || (this.#scheduled.get(list) ?? false))
    this.#timer ??= setTimeout(() => this.#notify(), this.#options.coalesceMs)
  }

  end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  #notify(): void {
    this.#timer = undefined
    if (this.#isBlocked || this.#isOver) return
    const { sink, hashOf } = this.#options
    const scheduled = [...this.#scheduled]
    this.#scheduled.clear()
    for (const [list, isCertain] of scheduled) {
      const hash = hashOf(list)
      if (!isCertain && hash === this.#notified.get(list)) continue
      this.#notified.set(list, hash)
      const notice = { kind: 'notice', method: LIST_CHANGES[list].method, params: Json.empty } as const
      const waiting = deliver(sink, notice, () => this.end())
      if (waiting) this.#block(waiting)
    }
  }

  /** A slow client gets one notification per list when it reads again. */
  #block(waiting: Promise<void>): void {
    this.#isBlocked = true
    const resume = (): void => {
      this.#isBlocked = false
      if (this.#scheduled.size > 0) this.#notify()
    }
    waiting.then(resume, resume)
  }
}
