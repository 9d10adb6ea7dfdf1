import { Abort } from '../protocol/cancellation.ts'
import { deliver } from '../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Frame, Sink } from '../protocol/exchange.ts'
import { type ChangingList, LIST_CHANGES, NOTIFICATIONS, noticeKey } from '../protocol/notifications.ts'
import { isModern } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'

const LISTEN = 'subscriptions/listen'
const HANDOVER_MS = 10_000 // for the new workspace to acknowledge a subscription

/** How subscriptions move to the new workspace. */
export interface HotSwapStep {
  readonly changed: readonly ChangingList[] // lists to notify
  /** Resolves when the old workspace is no longer needed: a session there may depend on its subscription. */
  readonly drained: Promise<void>
  /** The caller with its new policy; the same object for most. */
  readonly renew: (caller: Caller) => Caller
}

/** A dispatch whose target can be replaced. Open subscriptions move to the new target and are notified of changes. */
export interface HotSwap {
  readonly dispatch: Dispatch
  swap(next: Dispatch, step: HotSwapStep): void
  /** Ends the subscriptions of these callers. */
  end(isDue: (caller: Caller) => boolean): void
}

export const createHotSwap = (first: Dispatch): HotSwap => {
  const subscriptions = new Set<MovingSubscription>()
  let current = first

  const listen = (exchange: Exchange): void => {
    const subscription = new MovingSubscription(exchange, () => subscriptions.delete(subscription))
    subscriptions.add(subscription)
    subscription.attach(current)
  }

  return {
    dispatch: exchange =>
      exchange.method === LISTEN && exchange.kind === 'request' ? listen(exchange) : current(exchange),
    swap: (next, step) => {
      const isSame = next === current
      current = next
      for (const subscription of [...subscriptions])
        if (subscription.renew(step) || !isSame) subscription.attach(next, step)
    },
    end: isDue => {
      for (const subscription of [...subscriptions]) if (isDue(subscription.caller)) subscription.end()
    },
  }
}

/** The subscription at one target. */
interface Attachment {
  readonly abort: Abort
  isOld: boolean // a newer attachment has taken over
}

/** One `subscriptions/listen` of a client, attached to one target or, during a swap, to several. */
class MovingSubscription {
  #caller: Caller
  readonly #exchange: Exchange
  readonly #sink: Sink
  readonly #onEnd: () => void
  readonly #attachments = new Set<Attachment>()
  #isAcknowledged = false // to the client
  #promised: ReadonlySet<string> | undefined // acknowledged flags; undefined: no target has acknowledged yet

  constructor(exchange: Exchange, onEnd: () => void) {
    this.#caller = exchange.caller
    this.#exchange = exchange
    this.#sink = isModern(exchange.caller.revision) ? acknowledgedFirst(exchange.sink) : exchange.sink
    this.#onEnd = onEnd
    exchange.signal.onAbort(reason => {
      onEnd()
      for (const { abort } of this.#attachments) abort.abort(reason)
    })
  }

  get caller(): Caller {
    return this.#caller
  }

  /** True if the caller has changed. */
  renew({ renew }: HotSwapStep): boolean {
    const before = this.#caller
    this.#caller = renew(before)
    return this.#caller !== before
  }

  /** Notifies changes at once, because the new target answers requests already; its own events follow its acknowledgement. */
  attach(dispatch: Dispatch, step?: HotSwapStep): void {
    if (this.#exchange.signal.reason) return
    const before = [...this.#attachments]
    const attachment: Attachment = { abort: new Abort(), isOld: false }
    this.#attachments.add(attachment)
    const timer = step && setTimeout(() => this.#takeOver(before, step), HANDOVER_MS).unref()
    attachment.abort.onAbort(() => clearTimeout(timer))
    const settle = (): void => {
      clearTimeout(timer)
      if (step) this.#takeOver(before, step)
    }
    const notified = this.#notify(step?.changed ?? [])
    const sink = (frame: Frame): void | Promise<void> => {
      if (attachment.abort.reason) return
      if (frame.kind === 'result' || frame.kind === 'failure') {
        settle()
        return this.#ended(attachment, frame)
      }
      if (frame.kind === 'question') return this.#sink(frame)
      if (frame.method !== NOTIFICATIONS.acknowledged) return attachment.isOld ? undefined : this.#sink(frame)
      this.#addPromised(frame.params)
      settle()
      const waiting = this.#acknowledge(frame)
      if (step) this.#notify(step.changed.filter(list => !notified.includes(list)))
      return waiting
    }
    dispatch({ ...this.#exchange, caller: this.#caller, signal: attachment.abort, sink })
  }

  end(): void {
    this.#onEnd()
    for (const { abort } of this.#attachments) abort.abort({ kind: 'gone' })
    void deliver(this.#sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
  }

  /** Only the first acknowledgement reaches the client. */
  #acknowledge(frame: Frame): void | Promise<void> {
    if (this.#isAcknowledged) return
    this.#isAcknowledged = true
    return this.#sink(frame)
  }

  #takeOver(before: readonly Attachment[], { drained }: HotSwapStep): void {
    const left = before.filter(attachment => !attachment.isOld)
    if (left.length === 0 || this.#exchange.signal.reason) return
    for (const attachment of left) attachment.isOld = true
    void drained.then(() => {
      for (const attachment of left) {
        this.#attachments.delete(attachment)
        attachment.abort.abort({ kind: 'gone' })
      }
    })
  }

  /** Sends the notifications that were acknowledged or, if no target has acknowledged yet, requested. */
  #notify(changed: readonly ChangingList[]): readonly ChangingList[] {
    const isWanted = (flag: string): boolean =>
      this.#promised?.has(flag) ?? this.#exchange.params.at('notifications', flag)?.asBoolean() === true
    const notified = changed.filter(list => isWanted(LIST_CHANGES[list].flag))
    for (const list of notified)
      void deliver(this.#sink, { kind: 'notice', method: LIST_CHANGES[list].method, params: Json.empty })
    return notified
  }

  /** Only the latest attachment ends the subscription. */
  #ended(attachment: Attachment, frame: Frame): void | Promise<void> {
    this.#attachments.delete(attachment)
    if (attachment.isOld || [...this.#attachments].some(({ isOld }) => !isOld)) return
    this.#onEnd()
    for (const { abort } of this.#attachments) abort.abort({ kind: 'gone' })
    return this.#sink(frame)
  }

  #addPromised(acknowledged: Json): void {
    const flags = Object.values(LIST_CHANGES).map(({ flag }) => flag)
    const honoured = flags.filter(flag => acknowledged.at('notifications', flag)?.asBoolean() === true)
    this.#promised = new Set([...(this.#promised ?? []), ...honoured])
  }
}

const MOST_HELD = 256 // further notifications are dropped: a subscription may never be acknowledged

/**
 * Holds notifications back until the acknowledgement: the specification forbids them before it. Of several equal ones the
 * latest is kept.
 */
const acknowledgedFirst = (sink: Sink): Sink => {
  let held: Map<string, Frame> | undefined = new Map() // undefined: acknowledged or ended
  return frame => {
    if (!held || frame.kind === 'question') return sink(frame)
    if (frame.kind === 'notice' && frame.method !== NOTIFICATIONS.acknowledged) {
      const key = noticeKey(frame.method, frame.params) ?? `${held.size}`
      if (held.has(key) || held.size < MOST_HELD) held.set(key, frame)
      return
    }
    const waiting = frame.kind === 'notice' ? [...held.values()] : []
    held = undefined
    const pending = [frame, ...waiting].flatMap(each => sink(each) ?? [])
    return pending.length > 0 ? Promise.all(pending).then(() => {}) : undefined
  }
}
