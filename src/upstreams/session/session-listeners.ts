import { deliver } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Exchange, Frame, Question } from '../../protocol/exchange.ts'
import { CHANGING_LISTS, LIST_CHANGES, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'

const MOST_HELD = 100

interface HeldFrame {
  readonly frame: Frame
  readonly timer: NodeJS.Timeout | undefined
}

interface ListenerOptions {
  readonly holdMs: number // how long a question waits for the first listener
  readonly expectsListener: boolean // then notifications wait for the first one, too
}

/** The `subscriptions/listen` exchanges that receive what a legacy server sends outside any call. */
export class SessionListeners {
  readonly #options: ListenerOptions
  readonly #exchanges = new Map<Exchange, () => void>() // with what is called when the listener has left
  #held: HeldFrame[] = []
  #hadListener = false

  constructor(options: ListenerOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#exchanges.size
  }

  /** Whether a listener would miss something if the session ended now. */
  get isNeeded(): boolean {
    for (const { isIdle } of this.#exchanges.keys()) if (!isIdle?.()) return true
    return false
  }

  /** The latest listener: it gets the questions. */
  get last(): Exchange | undefined {
    return [...this.#exchanges.keys()].at(-1)
  }

  add(exchange: Exchange, capabilities: Json | undefined, left: () => void): void {
    if (exchange.signal.reason) return left()
    this.#exchanges.set(exchange, left)
    this.#hadListener = true
    exchange.signal.onAbort(() => this.#remove(exchange))
    const params = acknowledgement(exchange.params, capabilities)
    this.#send(exchange, { kind: 'notice', method: NOTIFICATIONS.acknowledged, params })
    if (!this.#exchanges.has(exchange)) return
    for (const { frame, timer } of this.#held.splice(0)) {
      clearTimeout(timer)
      this.#send(exchange, frame)
    }
  }

  notify(method: string, params: Json): void {
    const frame: Frame = { kind: 'notice', method, params }
    for (const exchange of [...this.#exchanges.keys()]) this.#send(exchange, frame)
    if (this.#options.expectsListener && !this.#hadListener && this.#held.length < MOST_HELD)
      this.#held.push({ frame, timer: undefined })
  }

  ask(question: Question): void {
    const { last } = this
    if (last) return this.#send(last, question)
    const timer = setTimeout(() => this.#refuse(question), this.#options.holdMs).unref()
    this.#held.push({ frame: question, timer })
    question.withdrawn.onAbort(() => this.#release(question))
  }

  /** The server was replaced: every list may have changed, whether or not the server announces changes. */
  notifyListsChanged(capabilities: Json | undefined): void {
    for (const list of CHANGING_LISTS) if (capabilities?.has(list)) this.notify(LIST_CHANGES[list].method, Json.empty)
  }

  /** Ends every listener with that frame. */
  close(frame: Frame): void {
    for (const { timer } of this.#held.splice(0)) clearTimeout(timer)
    const exchanges = [...this.#exchanges.keys()]
    this.#exchanges.clear()
    for (const exchange of exchanges) void deliver(exchange.sink, frame)
  }

  /** A listener whose sink throws has ended by that. */
  #send(exchange: Exchange, frame: Frame): void {
    void deliver(exchange.sink, frame, () => this.#remove(exchange))
  }

  #remove(exchange: Exchange): void {
    const left = this.#exchanges.get(exchange)
    if (this.#exchanges.delete(exchange)) left?.()
  }

  #release(question: Question): void {
    const held = this.#held.find(({ frame }) => frame === question)
    clearTimeout(held?.timer)
    this.#held = this.#held.filter(({ frame }) => frame !== question)
  }

  #refuse(question: Question): void {
    this.#release(question)
    const message = `No client is connected that could answer ${question.method}`
    question.answer({ kind: 'error', error: rpcError('methodNotFound', message) })
  }
}

/** The changes that the listener asked for and that the server announces. */
const acknowledgement = (params: Json, capabilities: Json | undefined): Json => {
  const wanted = params.get('notifications')
  const lists = CHANGING_LISTS.filter(
    list =>
      wanted?.get(LIST_CHANGES[list].flag)?.asBoolean() === true &&
      capabilities?.get(list)?.get('listChanged')?.asBoolean() === true,
  )
  return Json.of({ notifications: Object.fromEntries(lists.map(list => [LIST_CHANGES[list].flag, true])) })
}
