import { deliver } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import { type Caller, compactFrame, type Exchange, type Frame, type Question } from '../../protocol/exchange.ts'
import { CHANGING_LISTS, LIST_CHANGES, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { sharerOf } from './sharers.ts'

const MOST_HELD = 100

interface HeldFrame {
  readonly frame: Frame
  readonly sharer: string | undefined // undefined: of any
  readonly timer: NodeJS.Timeout | undefined
}

/** The `subscriptions/listen` exchanges that receive what a legacy server sends outside any call. */
export class SessionListeners {
  readonly #holdMs: number
  readonly #onAsked: (listener: Caller) => void
  readonly #exchanges = new Map<Exchange, () => void>() // with what is called when the listener has left
  #held: HeldFrame[] = []
  #hadListener = false

  /** `holdMs`: how long a question waits for a listener. */
  constructor(holdMs: number, onAsked: (listener: Caller) => void) {
    this.#holdMs = holdMs
    this.#onAsked = onAsked
  }

  get size(): number {
    return this.#exchanges.size
  }

  /** Whether a listener would miss something if the session ended now. */
  get isNeeded(): boolean {
    for (const { isIdle } of this.#exchanges.keys()) if (!isIdle?.()) return true
    return false
  }

  /** Whether a client would get what a listener is sent. */
  get hasClient(): boolean {
    for (const { hasClient } of this.#exchanges.keys()) if (hasClient?.() !== false) return true
    return false
  }

  /** The listener that gets the questions: the latest of that sharer; of any sharer, if none is given. */
  latest(sharer?: string): Exchange | undefined {
    const exchanges = [...this.#exchanges.keys()]
    return exchanges.findLast(({ caller }) => sharer === undefined || sharerOf(caller) === sharer)
  }

  /** Removes the listeners of a sharer, which another session will serve. */
  take(sharer: string): Exchange[] {
    const taken = [...this.#exchanges.keys()].filter(({ caller }) => sharerOf(caller) === sharer)
    for (const exchange of taken) this.#exchanges.delete(exchange)
    return taken
  }

  /** Adds a listener and acknowledges it. */
  add(exchange: Exchange, capabilities: Json | undefined, left: () => void): void {
    if (exchange.signal.reason) return left()
    this.adopt(exchange, left)
    const params = acknowledgement(exchange.params, capabilities)
    this.#send(exchange, { kind: 'notice', method: NOTIFICATIONS.acknowledged, params })
    if (!this.#exchanges.has(exchange)) return
    const isFor = ({ sharer }: HeldFrame): boolean => sharer === undefined || sharer === sharerOf(exchange.caller)
    const due = this.#held.filter(isFor)
    this.#held = this.#held.filter(held => !isFor(held))
    for (const { frame, timer } of due) {
      clearTimeout(timer)
      this.#send(exchange, frame)
    }
  }

  /** Adds a listener that has been acknowledged already. */
  adopt(exchange: Exchange, left: () => void): void {
    this.#exchanges.set(exchange, left)
    this.#hadListener = true
    exchange.signal.onAbort(() => this.#remove(exchange))
  }

  notify(method: string, params: Json, isFor: (listener: Caller) => boolean = () => true): void {
    const frame: Frame = { kind: 'notice', method, params }
    for (const exchange of [...this.#exchanges.keys()]) if (isFor(exchange.caller)) this.#send(exchange, frame)
    if (!this.#hadListener && this.#held.length < MOST_HELD)
      this.#held.push({ frame: compactFrame(frame), sharer: undefined, timer: undefined })
  }

  /** Asks the latest listener of that sharer, or the first that comes; of any sharer, if none is given. */
  ask(question: Question, sharer?: string): void {
    const listener = this.latest(sharer)
    if (listener) return this.#send(listener, question)
    const timer = setTimeout(() => this.#refuse(question), this.#holdMs).unref()
    this.#held.push({ frame: question, sharer, timer })
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
    if (frame.kind === 'question') this.#onAsked(exchange.caller)
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

/** The acknowledgement of a listen: the changes that it asked for and that the server announces. */
export const acknowledgement = (params: Json, capabilities: Json | undefined): Json => {
  const wanted = params.get('notifications')
  const lists = CHANGING_LISTS.filter(
    list =>
      wanted?.get(LIST_CHANGES[list].flag)?.asBoolean() === true &&
      capabilities?.get(list)?.get('listChanged')?.asBoolean() === true,
  )
  return Json.of({ notifications: Object.fromEntries(lists.map(list => [LIST_CHANGES[list].flag, true])) })
}
