import { compactCaller } from '../../protocol/callers.ts'
import { Abort, NEVER } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { LIST_CHANGES, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { within } from '../../std/time.ts'
import { Json } from '../../wire/json/json.ts'

const LINGER_MS = 30_000 // of listening after the last call
const SUBSCRIBE_MS = 5000 // for a server to accept a subscription

const LIST_FLAGS: ReadonlyMap<string, string> = new Map(
  Object.values(LIST_CHANGES).map(({ method, flag }) => [method, flag]),
)
const ALL_LISTS = Json.of({ notifications: Object.fromEntries([...LIST_FLAGS.values()].map(flag => [flag, true])) })

interface SubscriptionHooks {
  readonly dispatch: Dispatch
  received(frame: Extract<Frame, { kind: 'notice' | 'question' }>): void
  /** The session has ended. */
  ended(): void
}

/** The gateway's own `subscriptions/listen` on a session: receives everything that the server sends outside any call. */
export class SessionSubscription {
  readonly #hooks: SubscriptionHooks
  #abort: Abort | undefined
  #lingering: NodeJS.Timeout | undefined

  constructor(hooks: SubscriptionHooks) {
    this.#hooks = hooks
  }

  get isOpen(): boolean {
    return this.#abort !== undefined
  }

  /** Opens it as that caller, unless it is open, and keeps it open. */
  open(caller: Caller): void {
    this.keepOpen()
    if (this.#abort) return
    const abort = new Abort()
    this.#abort = abort
    this.#hooks.dispatch({
      kind: 'request',
      method: 'subscriptions/listen',
      params: ALL_LISTS,
      caller: compactCaller(caller), // it outlives the call
      signal: abort,
      sink: frame => this.#receive(frame, abort),
      isIdle: () => this.#lingering !== undefined,
    })
  }

  keepOpen(): void {
    clearTimeout(this.#lingering)
    this.#lingering = undefined
  }

  /** Closes it in a while. */
  linger(): void {
    clearTimeout(this.#lingering)
    this.#lingering = setTimeout(() => {
      this.#abort?.abort({ kind: 'gone' })
      this.#abort = undefined
    }, LINGER_MS).unref()
  }

  #receive(frame: Frame, abort: Abort): void {
    if (frame.kind === 'question' || frame.kind === 'notice') return this.#hooks.received(frame)
    if (this.#abort !== abort) return
    this.#abort = undefined
    clearTimeout(this.#lingering) // it would keep the session in memory
    this.#hooks.ended()
  }
}

interface ModernListener {
  readonly exchange: Exchange
  readonly uris: Set<string>
}

interface UriSubscription {
  listeners: number
  readonly accepted: Promise<boolean>
}

/** The modern listeners on one legacy session: each receives what it asked for, each URI is subscribed once. */
export class ModernListeners {
  readonly #dispatch: Dispatch
  readonly #listeners = new Set<ModernListener>()
  readonly #subscriptions = new Map<string, UriSubscription>() // by URI
  readonly #acknowledged: Promise<void>
  #acknowledge: () => void = () => {}
  #honoured: Json = Json.empty // the list flags that the server acknowledged

  constructor(dispatch: Dispatch) {
    this.#dispatch = dispatch
    this.#acknowledged = new Promise(resolve => {
      this.#acknowledge = resolve
    })
  }

  get size(): number {
    return this.#listeners.size
  }

  add(exchange: Exchange, onLeft: () => void): void {
    const listener: ModernListener = { exchange, uris: new Set() }
    this.#listeners.add(listener)
    exchange.signal.onAbort(() => {
      if (this.#listeners.delete(listener)) for (const uri of listener.uris) this.#unsubscribe(uri, exchange)
      onLeft()
    })
    void this.#subscribeAll(listener)
  }

  /** Forwards a notification of the server to the listeners that asked for it. */
  notify(method: string, params: Json): void {
    if (method === NOTIFICATIONS.acknowledged) {
      this.#honoured = params.get('notifications') ?? Json.empty
      return this.#acknowledge()
    }
    for (const listener of this.#listeners)
      if (isFor(listener, method, params)) void deliver(listener.exchange.sink, { kind: 'notice', method, params })
  }

  /** The session has ended: its listeners end too, and may listen again. */
  end(): void {
    for (const listener of [...this.#listeners]) {
      this.#listeners.delete(listener)
      void deliver(listener.exchange.sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
    }
    this.#subscriptions.clear()
  }

  /** Subscribes to the URIs, then acknowledges what the server honours. */
  async #subscribeAll(listener: ModernListener): Promise<void> {
    const { exchange } = listener
    const wanted = exchange.params.get('notifications') ?? Json.empty
    const named = (wanted.get('resourceSubscriptions')?.elements() ?? []).flatMap(uri => uri.asString() ?? [])
    const uris = [...new Set(named)]
    const acknowledged = within(SUBSCRIBE_MS, this.#acknowledged, () => {})
    await Promise.all([acknowledged, ...uris.map(uri => this.#subscribe(listener, uri))])
    if (!this.#listeners.has(listener)) return
    const flags = this.#honoured.entries().filter(([flag]) => wanted.get(flag)?.asBoolean() === true)
    const notifications = {
      ...Object.fromEntries(flags),
      ...(uris.length > 0 && { resourceSubscriptions: [...listener.uris] }),
    }
    const params = Json.of({ notifications })
    void deliver(exchange.sink, { kind: 'notice', method: NOTIFICATIONS.acknowledged, params })
  }

  async #subscribe(listener: ModernListener, uri: string): Promise<void> {
    const { exchange } = listener
    const known = this.#subscriptions.get(uri)
    const subscription = known ?? { listeners: 0, accepted: this.#request('resources/subscribe', uri, exchange) }
    this.#subscriptions.set(uri, subscription)
    subscription.listeners++
    if ((await subscription.accepted) && this.#listeners.has(listener)) listener.uris.add(uri)
    else this.#unsubscribe(uri, exchange)
  }

  #unsubscribe(uri: string, exchange: Exchange): void {
    const subscription = this.#subscriptions.get(uri)
    if (!subscription || --subscription.listeners > 0) return
    this.#subscriptions.delete(uri)
    void this.#request('resources/unsubscribe', uri, exchange)
  }

  /** Whether the server accepted. */
  #request(method: string, uri: string, { caller }: Exchange): Promise<boolean> {
    const answered = new Promise<boolean>(resolve =>
      this.#dispatch({
        kind: 'request',
        method,
        params: Json.of({ uri }),
        caller,
        signal: NEVER,
        sink: frame => {
          if (frame.kind === 'result' || frame.kind === 'failure') resolve(frame.kind === 'result')
        },
      }),
    )
    return within(SUBSCRIBE_MS, answered, () => false)
  }
}

const isFor = ({ exchange, uris }: ModernListener, method: string, params: Json): boolean => {
  const flag = LIST_FLAGS.get(method)
  if (flag !== undefined) return exchange.params.at('notifications', flag)?.asBoolean() === true
  const uri = params.get('uri')?.asString()
  if (method !== NOTIFICATIONS.resourceUpdated || uri === undefined) return false
  // An update may name a part of what was subscribed to.
  return [...uris].some(subscribed => uri === subscribed || uri.startsWith(`${subscribed}/`))
}
