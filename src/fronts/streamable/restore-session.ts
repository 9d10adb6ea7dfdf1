import { LIST_CHANGES, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { sendRequest } from '../../protocol/send-request.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification } from '../../wire/json-rpc.ts'
import { SET_LEVEL, SUBSCRIBE } from '../sessions/client-limits.ts'
import { mergeKey } from '../streams/event-log.ts'
import type { StreamableSession } from './streamable-session.ts'

const AT_ONCE = 8 // subscriptions sent at the same time

/**
 * Gives the servers what they knew of a session before it was revived: its log level and subscriptions. The client may
 * have missed any change meanwhile, so that each list and each subscribed resource is announced once.
 */
export const restoreSession = (session: StreamableSession): void => {
  session.listen()
  const { level } = session
  if (level !== undefined) void send(session, SET_LEVEL, Json.of({ level }))
  const uris = [...session.subscriptions.uris]
  for (let i = 0; i < AT_ONCE; i++) void subscribeAgain(session, uris)
  void announceLists(session)
}

/** A change that comes before the server has subscribed is announced, too: the announcement is sent afterwards. */
const subscribeAgain = async (session: StreamableSession, uris: string[]): Promise<void> => {
  for (let uri = uris.shift(); uri !== undefined; uri = uris.shift()) {
    if (session.isEnded) return
    if (!session.subscriptions.has(uri)) continue // the client has unsubscribed meanwhile
    const params = Json.of({ uri })
    await send(session, SUBSCRIBE, params)
    announce(session, NOTIFICATIONS.resourceUpdated, params)
  }
}

const announceLists = async (session: StreamableSession): Promise<void> => {
  const discovered = await send(session, 'server/discover', Json.empty)
  for (const [list, { method }] of Object.entries(LIST_CHANGES)) {
    const isOffered = discovered?.at('capabilities', list, 'listChanged')?.toString() === 'true'
    if (!discovered || isOffered) announce(session, method, Json.empty)
  }
}

const announce = (session: StreamableSession, method: string, params: Json): void => {
  if (!session.isEnded) void session.send(encodeNotification(method, params), mergeKey(method, params))
}

/** The result of a request on behalf of the session; undefined if it failed. */
const send = (session: StreamableSession, method: string, params: Json): Promise<Json | undefined> =>
  sendRequest(session.context.dispatch, session.caller, method, params, session.ending).catch((error: unknown) => {
    session.context.log.debug({ err: error, method }, 'request of a revived session failed')
    return undefined
  })
