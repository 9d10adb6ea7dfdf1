import { deliver } from '../../protocol/deliver.ts'
import type { Sink } from '../../protocol/exchange.ts'
import { type ChangingList, LIST_CHANGES } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'

interface Options {
  readonly sink: Sink
  readonly wanted: ReadonlySet<ChangingList>
  readonly coalesceMs: number
  /** Equal for as long as a list is shown the same. */
  readonly stateOf: (list: ChangingList) => string
}

/** Tells one listener of lists that became others: several changes at once, and none that cannot be seen. */
export class ListChangedNotifier {
  readonly #options: Options
  readonly #told = new Map<ChangingList, string>() // what the listener may know
  readonly #stirred = new Map<ChangingList, boolean>() // lists to look at; true: to be told of in any case
  #timer: NodeJS.Timeout | undefined
  #isBehind = false
  #isOver = false

  constructor(options: Options) {
    this.#options = options
    for (const list of options.wanted) this.#told.set(list, options.stateOf(list))
  }

  schedule(list: ChangingList, isCertain: boolean): void {
    if (!this.#options.wanted.has(list) || this.#isOver) return
    this.#stirred.set(list, isCertain || (this.#stirred.get(list) ?? false))
    this.#timer ??= setTimeout(() => this.#tell(), this.#options.coalesceMs)
  }

  end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  #tell(): void {
    this.#timer = undefined
    if (this.#isBehind || this.#isOver) return
    const { sink, stateOf } = this.#options
    const stirred = [...this.#stirred]
    this.#stirred.clear()
    for (const [list, isCertain] of stirred) {
      const state = stateOf(list)
      if (!isCertain && state === this.#told.get(list)) continue
      this.#told.set(list, state)
      const behind = deliver(sink, { kind: 'notice', method: LIST_CHANGES[list].method, params: Json.empty }, () =>
        this.end(),
      )
      if (behind) this.#waitFor(behind)
    }
  }

  /** For a reader who is behind one notice of each list is enough. */
  #waitFor(reader: Promise<void>): void {
    this.#isBehind = true
    const resume = (): void => {
      this.#isBehind = false
      if (this.#stirred.size > 0) this.#tell()
    }
    reader.then(resume, resume)
  }
}
