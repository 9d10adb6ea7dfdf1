import type { ClientPeer } from '../cli/command.ts'
import type { Dispatch } from '../protocol/exchange.ts'
import { CHANGING_LISTS, LIST_CHANGES } from '../protocol/notifications.ts'
import { Json } from '../wire/json/json.ts'

/** The flags of `subscriptions/listen` for every list. */
export const ALL_LISTS: Readonly<Record<string, true>> = Object.fromEntries(
  CHANGING_LISTS.map(list => [LIST_CHANGES[list].flag, true] as const),
)

/** Subscribes as a modern client does. */
export const watchByListen =
  (dispatch: Dispatch): ClientPeer['watch'] =>
  ({ uris, lists }, { caller, signal, sink }) => {
    const resources = uris.length > 0 ? { resourceSubscriptions: [...uris] } : {}
    const params = Json.of({ notifications: { ...(lists ? ALL_LISTS : {}), ...resources } })
    dispatch({ kind: 'request', method: 'subscriptions/listen', params, caller, signal, sink })
  }
