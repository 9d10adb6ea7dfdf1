import { compactCaller } from '../../protocol/callers.ts'
import { Abort } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { isPartOf, LIST_CHANGES, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { sendRequest } from '../../protocol/send-request.ts'
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
export const createSessionSubscription = ({ dispatch, received, ended }: SubscriptionHooks) => {
  let open: Abort | undefined
  let lingering: NodeJS.Timeout | undefined

  const keepOpen = (): void => {
    clearTimeout(lingering)
    lingering = undefined
  }

  const receive = (frame: Frame, abort: Abort): void => {
    if (frame.kind === 'question' || frame.kind === 'notice') return received(frame)
    if (open !== abort) return
    open = undefined
    clearTimeout(lingering) // it would keep the session in memory
    ended()
  }

  return {
    isOpen: (): boolean => open !== undefined,
    keepOpen,
    /** Opens it as that caller, unless it is open, and keeps it open. */
    open: (caller: Caller): void => {
      keepOpen()
      if (open) return
      const abort = new Abort()
      open = abort
      dispatch({
        kind: 'request',
        method: 'subscriptions/listen',
        params: ALL_LISTS,
        caller: compactCaller(caller), // it outlives the call
        signal: abort,
        sink: frame => receive(frame, abort),
        isIdle: () => lingering !== undefined,
      })
    },
    /** Closes it in a while. */
    linger: (): void => {
      clearTimeout(lingering)
      lingering = setTimeout(() => {
        open?.abort({ kind: 'gone' })
        open = undefined
      }, LINGER_MS).unref()
    },
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
export const createModernListeners = (dispatch: Dispatch) => {
  const listeners = new Set<ModernListener>()
  const subscriptions = new Map<string, UriSubscription>() // by URI
  let honoured: Json = Json.empty // the list flags that the server acknowledged
  let acknowledge: () => void = () => {}
  const acknowledged = new Promise<void>(resolve => {
    acknowledge = resolve
  })

  /** Subscribes to the URIs, then acknowledges what the server honours. */
  const subscribeAll = async (listener: ModernListener): Promise<void> => {
    const { exchange } = listener
    const wanted = exchange.params.get('notifications') ?? Json.empty
    const named = (wanted.get('resourceSubscriptions')?.elements() ?? []).flatMap(uri => uri.asString() ?? [])
    const uris = [...new Set(named)]
    await Promise.all([within(SUBSCRIBE_MS, acknowledged, () => {}), ...uris.map(uri => subscribe(listener, uri))])
    if (!listeners.has(listener)) return
    const flags = honoured.entries().filter(([flag]) => wanted.get(flag)?.asBoolean() === true)
    const notifications = {
      ...Object.fromEntries(flags),
      ...(uris.length > 0 && { resourceSubscriptions: [...listener.uris] }),
    }
    const params = Json.of({ notifications })
    void deliver(exchange.sink, { kind: 'notice', method: NOTIFICATIONS.acknowledged, params })
  }

  const subscribe = async (listener: ModernListener, uri: string): Promise<void> => {
    const { exchange } = listener
    const known = subscriptions.get(uri)
    const subscription = known ?? { listeners: 0, accepted: request('resources/subscribe', uri, exchange) }
    subscriptions.set(uri, subscription)
    subscription.listeners++
    if ((await subscription.accepted) && listeners.has(listener)) listener.uris.add(uri)
    else unsubscribe(uri, exchange)
  }

  const unsubscribe = (uri: string, exchange: Exchange): void => {
    const subscription = subscriptions.get(uri)
    if (!subscription || --subscription.listeners > 0) return
    subscriptions.delete(uri)
    void request('resources/unsubscribe', uri, exchange)
  }

  /** Whether the server accepted. */
  const request = (method: string, uri: string, { caller }: Exchange): Promise<boolean> => {
    const answered = sendRequest(dispatch, caller, method, Json.of({ uri })).then(
      () => true,
      () => false,
    )
    return within(SUBSCRIBE_MS, answered, () => false)
  }

  return {
    isEmpty: (): boolean => listeners.size === 0,
    add: (exchange: Exchange, onLeft: () => void): void => {
      const listener: ModernListener = { exchange, uris: new Set() }
      listeners.add(listener)
      exchange.signal.onAbort(() => {
        if (listeners.delete(listener)) for (const uri of listener.uris) unsubscribe(uri, exchange)
        onLeft()
      })
      void subscribeAll(listener)
    },
    /** Forwards a notification of the server to the listeners that asked for it. */
    notify: (method: string, params: Json): void => {
      if (method === NOTIFICATIONS.acknowledged) {
        honoured = params.get('notifications') ?? Json.empty
        return acknowledge()
      }
      for (const listener of listeners)
        if (isFor(listener, method, params)) void deliver(listener.exchange.sink, { kind: 'notice', method, params })
    },
    /** The session has ended: its listeners end too, and may listen again. */
    end: (): void => {
      for (const listener of [...listeners]) {
        listeners.delete(listener)
        void deliver(listener.exchange.sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
      }
      subscriptions.clear()
    },
  }
}

const isFor = ({ exchange, uris }: ModernListener, method: string, params: Json): boolean => {
  const flag = LIST_FLAGS.get(method)
  if (flag !== undefined) return exchange.params.at('notifications', flag)?.asBoolean() === true
  const uri = params.get('uri')?.asString()
  if (method !== NOTIFICATIONS.resourceUpdated || uri === undefined) return false
  return [...uris].some(subscribed => isPartOf(uri, subscribed))
}
