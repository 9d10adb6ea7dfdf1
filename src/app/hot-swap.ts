import { Abort } from '../protocol/cancellation.ts'
import { deliver } from '../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Frame, Sink } from '../protocol/exchange.ts'
import { type ChangingList, LIST_CHANGES, NOTIFICATIONS } from '../protocol/notifications.ts'
import { isModern } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import { acknowledgedFirst } from '../workspace/subscriptions/acknowledged-first.ts'

const LISTEN = 'subscriptions/listen'
const HANDOVER_MS = 10_000 // for the new side to take a listener over

/** How listeners go over to the other side. */
export interface HotSwapStep {
  readonly changed: readonly ChangingList[] // what they are told of
  /** When nobody needs the old side any more: a session there may live by its listener. */
  readonly drained: Promise<void>
  /** Who a listener is from now on; the same for most. */
  readonly renew: (caller: Caller) => Caller
}

/** A door that stays while what is behind it changes: whoever listens goes over and is told what changed. */
export interface HotSwap {
  readonly dispatch: Dispatch
  swap(next: Dispatch, turn: HotSwapStep): void
  /** Who listens hears that this was all. */
  end(isDue: (caller: Caller) => boolean): void
}

export const createHotSwap = (first: Dispatch): HotSwap => {
  const listeners = new Set<Listener>()
  let current = first

  const listen = (exchange: Exchange): void => {
    const listener = new Listener(exchange, () => listeners.delete(listener))
    listeners.add(listener)
    listener.attach(current)
  }

  return {
    dispatch: exchange =>
      exchange.method === LISTEN && exchange.kind === 'request' ? listen(exchange) : current(exchange),
    swap: (next, turn) => {
      const isSame = next === current
      current = next
      for (const listener of [...listeners]) if (listener.renew(turn) || !isSame) listener.attach(next, turn)
    },
    end: isDue => {
      for (const listener of [...listeners]) if (isDue(listener.caller)) listener.end()
    },
  }
}

/** What comes from one side of the door. */
interface Feed {
  readonly abort: Abort
  isOld: boolean // another one speaks for the workspace now
}

/** One standing exchange, and whoever feeds it. */
class Listener {
  caller: Caller
  readonly #exchange: Exchange
  readonly #sink: Sink
  readonly #left: () => void
  readonly #feeds = new Set<Feed>()
  #isAcknowledged = false // the client has been told
  #promised: ReadonlySet<string> | undefined // flags of what is told, once somebody has said so

  constructor(exchange: Exchange, left: () => void) {
    this.caller = exchange.caller
    this.#exchange = exchange
    this.#sink = isModern(exchange.caller.revision) ? acknowledgedFirst(exchange.sink) : exchange.sink
    this.#left = left
    exchange.signal.onAbort(reason => {
      left()
      for (const { abort } of this.#feeds) abort.abort(reason)
    })
  }

  /** True if it is somebody else now. */
  renew({ renew }: HotSwapStep): boolean {
    const before = this.caller
    this.caller = renew(before)
    return this.caller !== before
  }

  /** What changed is told at once: whoever asks now is answered by the new side. Until that listens, the old one speaks. */
  attach(dispatch: Dispatch, turn?: HotSwapStep): void {
    if (this.#exchange.signal.reason) return
    const before = [...this.#feeds]
    const feed: Feed = { abort: new Abort(), isOld: false }
    this.#feeds.add(feed)
    const late = turn && setTimeout(() => this.#takeOver(before, turn), HANDOVER_MS)
    late?.unref()
    feed.abort.onAbort(() => clearTimeout(late))
    const settle = (): void => {
      clearTimeout(late)
      if (turn) this.#takeOver(before, turn)
    }
    const told = this.#tell(turn?.changed ?? [])
    const sink = (frame: Frame): void | Promise<void> => {
      if (feed.abort.reason) return
      if (frame.kind === 'result' || frame.kind === 'failure') {
        settle()
        return this.#over(feed, frame)
      }
      if (frame.kind === 'question') return this.#sink(frame)
      if (frame.method !== NOTIFICATIONS.acknowledged) return feed.isOld ? undefined : this.#sink(frame)
      this.#note(frame.params)
      settle()
      const behind = this.#acknowledge(frame)
      if (turn) this.#tell(turn.changed.filter(list => !told.includes(list)))
      return behind
    }
    dispatch({ ...this.#exchange, caller: this.caller, signal: feed.abort, sink })
  }

  end(): void {
    this.#left()
    for (const { abort } of this.#feeds) abort.abort({ kind: 'gone' })
    void deliver(this.#sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
  }

  /** Once, whichever side is the first to do so. */
  #acknowledge(frame: Frame): void | Promise<void> {
    if (this.#isAcknowledged) return
    this.#isAcknowledged = true
    return this.#sink(frame)
  }

  #takeOver(before: readonly Feed[], { drained }: HotSwapStep): void {
    const left = before.filter(feed => !feed.isOld)
    if (left.length === 0 || this.#exchange.signal.reason) return
    for (const feed of left) feed.isOld = true
    void drained.then(() => {
      for (const feed of left) {
        this.#feeds.delete(feed)
        feed.abort.abort({ kind: 'gone' })
      }
    })
  }

  /** Tells what was promised; where nobody answers a listener, what it asked for. */
  #tell(changed: readonly ChangingList[]): readonly ChangingList[] {
    const isWanted = (flag: string): boolean =>
      this.#promised?.has(flag) ?? this.#exchange.params.at('notifications', flag)?.asBoolean() === true
    const told = changed.filter(list => isWanted(LIST_CHANGES[list].flag))
    for (const list of told)
      void deliver(this.#sink, { kind: 'notice', method: LIST_CHANGES[list].method, params: Json.empty })
    return told
  }

  /** Only the side that speaks can end the whole; an older one just falls silent. */
  #over(feed: Feed, frame: Frame): void | Promise<void> {
    this.#feeds.delete(feed)
    if (feed.isOld || [...this.#feeds].some(({ isOld }) => !isOld)) return
    this.#left()
    for (const { abort } of this.#feeds) abort.abort({ kind: 'gone' })
    return this.#sink(frame)
  }

  #note(acknowledged: Json): void {
    const flags = Object.values(LIST_CHANGES).map(({ flag }) => flag)
    const honoured = flags.filter(flag => acknowledged.at('notifications', flag)?.asBoolean() === true)
    this.#promised = new Set([...(this.#promised ?? []), ...honoured])
  }
}
