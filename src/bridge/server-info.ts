import { NEVER } from '../protocol/cancellation.ts'
import type { Caller, Dispatch } from '../protocol/exchange.ts'
import { META } from '../protocol/meta.ts'
import { Json } from '../wire/json/json.ts'

/** The `serverInfo` of a legacy server. It is sent once, in the handshake; modern clients may read it on every result. */
export const createServerInfo = (server: Dispatch) => {
  let known: Json | undefined // an object with this one member

  /** The gateway's sessions answer this themselves and at once, from the handshake. */
  const discover = (caller: Caller): Json | undefined => {
    let info: Json | undefined
    server({
      kind: 'request',
      method: 'server/discover',
      params: Json.empty,
      caller,
      signal: NEVER,
      sink: frame => {
        if (frame.kind === 'result') info = frame.result.at('_meta', META.serverInfo)
      },
    })
    return info && Json.of({ [META.serverInfo]: info })
  }

  /** The result with the server's info, unless the server wrote it itself. */
  const addTo = (result: Json, caller: Caller): Json => {
    if (!result.isObject) return result
    const own = result.get('_meta')
    if (own?.has(META.serverInfo)) return result
    known ??= discover(caller)
    if (!known) return result
    const info = own?.isObject ? known.get(META.serverInfo) : undefined
    return result.with('_meta', own && info ? own.with(META.serverInfo, info) : known)
  }

  return {
    addTo,
    forget: (): void => {
      known = undefined
    },
    /** Wraps a dispatch so that every result has the server's info. */
    wrap:
      (dispatch: Dispatch): Dispatch =>
      exchange => {
        const { kind, sink, caller } = exchange
        if (kind === 'notification') return dispatch(exchange)
        dispatch({
          ...exchange,
          sink: frame =>
            sink(frame.kind === 'result' ? { kind: 'result', result: addTo(frame.result, caller) } : frame),
        })
      },
  }
}
