import { Json } from '../wire/json/json.ts'
import type { Frame } from './exchange.ts'

/** Notifications the gateway reads or writes itself; every other one passes through. */
export const NOTIFICATIONS = {
  initialized: 'notifications/initialized',
  cancelled: 'notifications/cancelled',
  progress: 'notifications/progress',
  message: 'notifications/message',
  rootsChanged: 'notifications/roots/list_changed',
  resourceUpdated: 'notifications/resources/updated',
  acknowledged: 'notifications/subscriptions/acknowledged',
  elicitationComplete: 'notifications/elicitation/complete',
} as const

/** The flag of `subscriptions/listen` that asks for changes of a list, and the notification that announces one. */
interface ListChange {
  readonly flag: string
  readonly method: string
}

/** By the capability that backs each list. */
export const LIST_CHANGES = {
  tools: { flag: 'toolsListChanged', method: 'notifications/tools/list_changed' },
  prompts: { flag: 'promptsListChanged', method: 'notifications/prompts/list_changed' },
  resources: { flag: 'resourcesListChanged', method: 'notifications/resources/list_changed' },
} as const satisfies Readonly<Record<string, ListChange>>

/** A list whose changes are announced. */
export type ChangingList = keyof typeof LIST_CHANGES

export const CHANGING_LISTS = Object.keys(LIST_CHANGES) as readonly ChangingList[]

type Notice = Extract<Frame, { kind: 'notice' }>

/** Announces everything that an acknowledged `subscriptions/listen` may have missed; `acknowledged`: its params. */
export const missedNotices = (acknowledged: Json): Notice[] => {
  const notifications = acknowledged.get('notifications')
  const lists = CHANGING_LISTS.filter(list => notifications?.get(LIST_CHANGES[list].flag)?.asBoolean() === true)
  const uris = notifications?.get('resourceSubscriptions')?.elements() ?? []
  return [
    ...lists.map((list): Notice => ({ kind: 'notice', method: LIST_CHANGES[list].method, params: Json.empty })),
    ...uris.map(
      (uri): Notice => ({
        kind: 'notice',
        method: NOTIFICATIONS.resourceUpdated,
        params: Json.of({ uri: uri.compact() }),
      }),
    ),
  ]
}

/** Equal for notifications of which the latest is as good as all; undefined: each one counts. */
export const noticeKey = (method: string, params: Json): string | undefined => {
  if (method.endsWith('/list_changed')) return method
  return method === NOTIFICATIONS.resourceUpdated ? `${method} ${params.get('uri')}` : undefined
}

/** Changes of servers' lists that replicas tell each other. */
export interface ListChanges {
  /** A server has announced to this replica that a list has changed. */
  announce(server: string, list: ChangingList): void
  /** Calls the listener for each list that has changed at another replica, until the returned function is called. */
  onChanged(listener: (server: string, list: ChangingList) => void): () => void
}

/** Whether a subscription to one resource includes updates of another: an update may name a part of what was subscribed to. */
export const isPartOf = (uri: string, subscribed: string): boolean =>
  uri === subscribed || uri.startsWith(subscribed.endsWith('/') ? subscribed : `${subscribed}/`)
