import { deliver } from '../../protocol/deliver.ts'
import type { Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { LIST_CHANGES, missedNotices, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import { withBoundedUris } from './bounded-uris.ts'
import { UpstreamSubscription } from './upstream-subscription.ts'

/** All subscriptions of a workspace with one server and no rules. */
export interface SingleServerSubscriptions {
  readonly dispatch: Dispatch // answers `subscriptions/listen`
  /** The server is back. */
  onRecovered(): void
  /** The login of a principal came or went: its lists are others now. Undefined: of every principal. */
  onLoginChanged(principal: string | undefined): void
  /** The tools have changed, and the server has not announced it. */
  onToolsChanged(): void
  close(): void
}

/** `onListChanged` is called before a client is told that a list has changed. */
export const createSingleServerSubscriptions = (
  member: Member,
  onListChanged: () => void,
): SingleServerSubscriptions => {
  const subscriptions = new Set<SingleServerSubscription>()

  const listen = (exchange: Exchange): void => {
    const sink = (frame: Frame): void | Promise<void> => {
      if (frame.kind === 'notice' && frame.method.endsWith('/list_changed')) onListChanged()
      return exchange.sink(frame)
    }
    const subscription = new SingleServerSubscription(member, { ...exchange, sink }, () =>
      subscriptions.delete(subscription),
    )
    subscriptions.add(subscription)
    subscription.start()
  }

  return {
    dispatch: exchange => listen(withBoundedUris(exchange)),
    onRecovered: () => {
      for (const { upstream } of subscriptions) upstream.reconnect()
    },
    onLoginChanged: principal => {
      onListChanged()
      for (const subscription of [...subscriptions])
        if (principal === undefined || subscription.principal === principal) subscription.announceChanges()
    },
    onToolsChanged: () => {
      onListChanged()
      for (const subscription of [...subscriptions]) subscription.announce(LIST_CHANGES.tools.method)
    },
    close: () => {
      for (const subscription of [...subscriptions])
        subscription.end({ kind: 'result', result: Json.of({ resultType: 'complete' }) })
    },
  }
}

/** One `subscriptions/listen` of a client: frames pass unchanged, and the client does not see the server's restarts. */
class SingleServerSubscription {
  readonly upstream: UpstreamSubscription
  readonly #exchange: Exchange
  readonly #onEnd: () => void
  #isAcknowledged = false

  constructor(member: Member, exchange: Exchange, onEnd: () => void) {
    this.#exchange = exchange
    this.#onEnd = onEnd
    this.upstream = new UpstreamSubscription(member, exchange, {
      onListening: (acknowledged, wasLost) => this.#onListening(acknowledged, wasLost),
      onRejected: error => this.end({ kind: 'failure', error }),
      onFrame: exchange.sink,
    })
  }

  get principal(): string | undefined {
    return this.#exchange.caller.principal
  }

  /** Announces changes of all lists: not every server announces them itself. */
  announceChanges(): void {
    this.upstream.reconnect()
    this.announce('/list_changed')
  }

  /** Sends the notifications whose method ends like that, as far as the client wants them. */
  announce(ending: string): void {
    if (!this.#isAcknowledged) return
    for (const notice of missedNotices(this.#exchange.params))
      if (notice.method.endsWith(ending)) void deliver(this.#exchange.sink, notice)
  }

  start(): void {
    this.#exchange.signal.onAbort(reason => {
      this.upstream.end(reason)
      this.#onEnd()
    })
    this.upstream.start()
    void this.upstream.settled.then(() => {
      // The server cannot be reached now; what the client asked for is sent as soon as it can.
      if (!this.#exchange.signal.reason) this.#acknowledge(this.#exchange.params.without('_meta'))
    })
  }

  /** Ends it with that frame, which the client gets. */
  end(frame: Frame): void {
    this.#isAcknowledged = true
    this.#onEnd()
    this.upstream.end({ kind: 'closing' })
    void deliver(this.#exchange.sink, frame)
  }

  #onListening(acknowledged: Json, wasLost: boolean): void {
    this.#acknowledge(acknowledged)
    if (!wasLost) return
    for (const notice of missedNotices(acknowledged)) void deliver(this.#exchange.sink, notice)
  }

  #acknowledge(params: Json): void {
    if (this.#isAcknowledged) return
    this.#isAcknowledged = true
    void deliver(this.#exchange.sink, { kind: 'notice', method: NOTIFICATIONS.acknowledged, params })
  }
}
