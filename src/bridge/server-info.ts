import { NEVER } from '../protocol/cancellation.ts'
import type { Caller, Dispatch, Exchange } from '../protocol/exchange.ts'
import { META } from '../protocol/meta.ts'
import { Json } from '../wire/json/json.ts'

/** The `serverInfo` of a legacy server. It is sent once, in the handshake; modern clients may read it on every result. */
export class ServerInfo {
  readonly #dispatch: Dispatch
  #meta: Json | undefined // an object with this one member

  constructor(dispatch: Dispatch) {
    this.#dispatch = dispatch
  }

  forget(): void {
    this.#meta = undefined
  }

  /** Wraps a dispatch so that every result has the server's info. */
  wrap(dispatch: Dispatch): Dispatch {
    return exchange =>
      dispatch(exchange.kind === 'notification' ? exchange : { ...exchange, sink: this.#addingSink(exchange) })
  }

  #addingSink({ sink, caller }: Exchange): Exchange['sink'] {
    return frame => sink(frame.kind === 'result' ? { kind: 'result', result: this.addTo(frame.result, caller) } : frame)
  }

  /** The result with the server's info, unless the server wrote it itself. */
  addTo(result: Json, caller: Caller): Json {
    if (!result.isObject) return result
    const own = result.get('_meta')
    if (own?.has(META.serverInfo)) return result
    this.#meta ??= this.#discover(caller)
    const meta = this.#meta
    if (!meta) return result
    const info = own?.isObject ? meta.get(META.serverInfo) : undefined
    return result.with('_meta', own && info ? own.with(META.serverInfo, info) : meta)
  }

  /** The gateway's sessions answer this themselves and at once, from the handshake. */
  #discover(caller: Caller): Json | undefined {
    let info: Json | undefined
    this.#dispatch({
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
}
