import { deliver } from '../../protocol/deliver.ts'
import type { Exchange, Frame, Sink } from '../../protocol/exchange.ts'
import {
  CHANGING_LISTS,
  type ChangingList,
  isPartOf,
  LIST_CHANGES,
  NOTIFICATIONS,
} from '../../protocol/notifications.ts'
import { Json } from '../../wire/json/json.ts'
import { failure, toRpcError } from './failures.ts'

/** Announces that something a server offers has changed. */
export interface Changes {
  tools(): void
  prompts(): void
  resources(): void
  /** One resource: subscribers of its URI, or of a folder above it, are notified. */
  updated(uri: string): void
}

/** What a server can announce. */
export interface Announceable {
  readonly lists: readonly ChangingList[]
  readonly hasResource: (uri: string) => boolean
}

/** What one `subscriptions/listen` request asks for. */
interface Filter {
  readonly lists: readonly ChangingList[]
  readonly uris: readonly string[] | undefined // undefined: not asked for
}

interface Subscriber extends Filter {
  readonly notify: (key: string, frame: Frame) => void
  readonly end: () => void
}

/** The open `subscriptions/listen` requests of a server. */
export interface Subscriptions {
  readonly changes: Changes
  listen(exchange: Exchange): void
  close(): void
}

/** Each request is answered with `result` when the server closes. */
export const createSubscriptions = (announceable: Announceable, result: Json): Subscriptions => {
  const subscribers = new Set<Subscriber>()
  const announce = (key: string, frame: Frame, isWanted: (subscriber: Subscriber) => boolean): void => {
    for (const subscriber of subscribers) if (isWanted(subscriber)) subscriber.notify(key, frame)
  }
  const announceList = (list: ChangingList) => (): void =>
    announce(list, notification(LIST_CHANGES[list].method, Json.empty), ({ lists }) => lists.includes(list))

  const listen = (exchange: Exchange): void => {
    let filter: Filter
    try {
      filter = restrict(readFilter(exchange.params.get('notifications')), announceable)
    } catch (error) {
      return void deliver(exchange.sink, { kind: 'failure', error: toRpcError(error) })
    }
    const queue = createQueue(exchange.sink)
    const leave = (): void => {
      subscribers.delete(subscriber)
      queue.stop()
    }
    let stopListening = (): void => {}
    const subscriber: Subscriber = {
      ...filter,
      notify: queue.send,
      end: () => {
        leave()
        stopListening()
        void deliver(exchange.sink, { kind: 'result', result })
      },
    }
    subscribers.add(subscriber)
    queue.send('acknowledged', notification(NOTIFICATIONS.acknowledged, acknowledgement(filter)))
    // At a shutdown the client is still there and gets the result; otherwise it has gone.
    stopListening = exchange.signal.onAbort(reason => (reason.kind === 'closing' ? subscriber.end() : leave()))
  }

  return {
    changes: {
      tools: announceList('tools'),
      prompts: announceList('prompts'),
      resources: announceList('resources'),
      updated: uri =>
        announce(uri, notification(NOTIFICATIONS.resourceUpdated, Json.of({ uri })), ({ uris = [] }) =>
          uris.some(subscribed => isPartOf(uri, subscribed)),
        ),
    },
    listen,
    close: () => {
      for (const subscriber of subscribers) subscriber.end()
    },
  }
}

const notification = (method: string, params: Json): Frame => ({ kind: 'notice', method, params })

/** Sends while the client keeps up; while it is behind, keeps the latest notification of each key. */
const createQueue = (sink: Sink) => {
  const waiting = new Map<string, Frame>()
  let state: 'free' | 'busy' | 'stopped' = 'free'
  const send = (key: string, frame: Frame): void => {
    if (state === 'busy') waiting.set(key, frame)
    if (state !== 'free') return
    const behind = deliver(sink, frame, stop)
    if (!behind) return
    state = 'busy'
    behind.then(resume, resume)
  }
  const resume = (): void => {
    if (state === 'stopped') return
    state = 'free'
    const frames = [...waiting]
    waiting.clear()
    for (const [key, frame] of frames) send(key, frame)
  }
  const stop = (): void => {
    state = 'stopped'
  }
  return { send, stop }
}

const readFilter = (json: Json | undefined): Filter => {
  if (!json?.isObject) throw failure('invalidParams', 'notifications must be an object')
  const isWanted = (list: ChangingList): boolean => {
    const flag = json.get(LIST_CHANGES[list].flag)
    if (flag && flag.kind !== 'boolean')
      throw failure('invalidParams', `notifications.${LIST_CHANGES[list].flag} must be a boolean`)
    return flag?.asBoolean() === true
  }
  return { lists: CHANGING_LISTS.filter(isWanted), uris: readUris(json.get('resourceSubscriptions')) }
}

const readUris = (json: Json | undefined): string[] | undefined => {
  if (json === undefined) return undefined
  const uris = json.elements().map(uri => uri.asString())
  if (json.kind !== 'array' || !uris.every(uri => uri !== undefined))
    throw failure('invalidParams', 'notifications.resourceSubscriptions must be a list of strings')
  return uris
}

/** Leaves out what the server cannot announce. */
const restrict = (filter: Filter, { lists, hasResource }: Announceable): Filter => ({
  lists: filter.lists.filter(list => lists.includes(list)),
  uris: lists.includes('resources') ? filter.uris?.filter(hasResource) : undefined,
})

const acknowledgement = ({ lists, uris }: Filter): Json => {
  const flags = Object.fromEntries(lists.map(list => [LIST_CHANGES[list].flag, true]))
  return Json.of({ notifications: { ...flags, resourceSubscriptions: uris } })
}
