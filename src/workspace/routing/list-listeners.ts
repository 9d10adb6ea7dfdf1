import { deliver } from '../../protocol/deliver.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import { type ChangingList, LIST_CHANGES, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { isModern } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { cacheOwnerOf } from '../catalog/cache-owner.ts'

interface ListListener {
  readonly exchange: Exchange
  readonly waiting: Set<ChangingList> // changes before the acknowledgement, which is the first message of a subscription
  isAcknowledged: boolean
}

/** The open subscriptions of clients, for changes that the server does not announce itself. */
export class ListListeners {
  readonly #listeners = new Set<ListListener>()

  /** Adds a `subscriptions/listen`; returns it as it must be sent to the server. */
  add(exchange: Exchange): Exchange {
    const isLegacy = !isModern(exchange.caller.revision) // its client gets no acknowledgement
    const listener: ListListener = { exchange, waiting: new Set(), isAcknowledged: isLegacy }
    this.#listeners.add(listener)
    exchange.signal.onAbort(() => this.#listeners.delete(listener))
    const take = (frame: Frame): void | Promise<void> => {
      if (frame.kind === 'result' || frame.kind === 'failure') this.#listeners.delete(listener)
      if (frame.kind === 'notice' && frame.method === NOTIFICATIONS.acknowledged)
        queueMicrotask(() => acknowledge(listener)) // after it was sent
      return exchange.sink(frame)
    }
    return { ...exchange, sink: take }
  }

  /** Sends `list_changed` to the clients of one cache owner that have asked for it. */
  notify(owner: string, list: ChangingList): void {
    for (const listener of [...this.#listeners]) {
      const { caller, params } = listener.exchange
      const isWanted = params.at('notifications', LIST_CHANGES[list].flag)?.asBoolean() === true
      if (!isWanted || cacheOwnerOf(caller) !== owner) continue
      if (listener.isAcknowledged) send(listener, list)
      else listener.waiting.add(list)
    }
  }

  clear(): void {
    this.#listeners.clear()
  }
}

const acknowledge = (listener: ListListener): void => {
  listener.isAcknowledged = true
  for (const list of listener.waiting) send(listener, list)
  listener.waiting.clear()
}

const send = ({ exchange }: ListListener, list: ChangingList): void =>
  void deliver(exchange.sink, { kind: 'notice', method: LIST_CHANGES[list].method, params: Json.empty })
