import { ParamHeaderWriter } from '../bridge/param-header-writer.ts'
import { askInRounds } from '../bridge/rounds.ts'
import { askForUrls } from '../bridge/url-elicitation.ts'
import type { ClientPeer, OpenServer } from '../cli/command.ts'
import { DEFAULT_LIMITS } from '../config/snapshot.ts'
import { Abort } from '../protocol/cancellation.ts'
import { thrownError } from '../protocol/deliver.ts'
import type { Caller, Peer, Sink } from '../protocol/exchange.ts'
import { NOTIFICATIONS } from '../protocol/notifications.ts'
import { isModern } from '../protocol/revisions.ts'
import { sendRequest } from '../protocol/send-request.ts'
import { ProcessHost } from '../upstreams/process/process-host.ts'
import { KnownEras } from '../upstreams/stdio/known-era.ts'
import { Json } from '../wire/json/json.ts'
import { buildServer } from './build-server.ts'
import { ALL_LISTS, watchByListen } from './client-watch.ts'

/** Connects to one server as its only client, in the server's own revision; rejects with RpcFailure. */
export const openServer: OpenServer = async (
  config,
  { caller, timeoutMs, isRevisionForced, version, data, log, sink },
) => {
  const upstream = buildServer(config, {
    log,
    version,
    data,
    host: new ProcessHost(DEFAULT_LIMITS.concurrentStarts),
    knownEras: new KnownEras(),
    sources: () => undefined,
    ownPort: () => undefined,
    client: { timeoutMs, offersCallerRevision: isRevisionForced },
  })
  try {
    const peer = await upstream.open(caller)
    const own = { ...caller, revision: peer.revision }
    const client = isModern(peer.revision) ? openStateless(peer) : openSession(peer, own, sink)
    return { ...client, close: () => client.close().then(() => upstream.close()) }
  } catch (error) {
    await upstream.close().catch(() => {})
    throw error
  }
}

const openStateless = (peer: Peer): ClientPeer => ({
  revision: peer.revision,
  // A server in this process asks with question frames already.
  dispatch: peer.asks ? peer.dispatch : askInRounds(new ParamHeaderWriter().wrap(peer.dispatch), DEFAULT_LIMITS),
  watch: watchByListen(peer.dispatch),
  close: async () => {},
})

/** A legacy session: what the server sends outside calls goes to `sink`, and to subscribers. */
const openSession = (peer: Peer, caller: Caller, sink: Sink): ClientPeer => {
  const closing = new Abort()
  const listeners = new Set<Sink>()
  const publish: Sink = frame => {
    for (const listener of listeners) void listener(frame)
    return sink(frame)
  }
  const params = Json.of({ notifications: ALL_LISTS })
  peer.dispatch({ kind: 'request', method: 'subscriptions/listen', params, caller, signal: closing, sink: publish })

  const onNotification = (listener: (method: string, params: Json) => void): (() => void) => {
    const forward: Sink = frame => {
      if (frame.kind === 'notice') listener(frame.method, frame.params)
    }
    listeners.add(forward)
    return () => listeners.delete(forward)
  }

  const watch: ClientPeer['watch'] = ({ uris }, { signal, sink: subscriber }) => {
    const forward: Sink = frame => (frame.kind === 'question' ? undefined : subscriber(frame))
    listeners.add(forward)
    signal.onAbort(() => listeners.delete(forward))
    const subscribe = (uri: string): Promise<Json> =>
      sendRequest(peer.dispatch, caller, 'resources/subscribe', Json.of({ uri }), signal)
    const acknowledgement = Json.of({ notifications: { ...ALL_LISTS, resourceSubscriptions: [...uris] } })
    Promise.all(uris.map(subscribe)).then(
      () => subscriber({ kind: 'notice', method: NOTIFICATIONS.acknowledged, params: acknowledgement }),
      (thrown: unknown) => (signal.reason ? undefined : subscriber({ kind: 'failure', error: thrownError(thrown) })),
    )
  }

  const dispatch = askForUrls({ dispatch: peer.dispatch, hold: () => peer.hold?.() ?? (() => {}), onNotification })
  const close = async (): Promise<void> => closing.abort({ kind: 'gone' })
  return { revision: peer.revision, dispatch, watch, close }
}
