import { NEVER } from '../protocol/cancellation.ts'
import type { Caller, Dispatch, Exchange } from '../protocol/exchange.ts'
import { META } from '../protocol/meta.ts'
import { Json } from '../wire/json/json.ts'

/** Who a legacy server is: it said so once, in its handshake; modern callers may look for it on every result. */
export class Introduction {
  readonly #dispatch: Dispatch
  #meta: Json | undefined // with nothing in it but who the server is

  constructor(dispatch: Dispatch) {
    this.#dispatch = dispatch
  }

  forget(): void {
    this.#meta = undefined
  }

  /** The result with the server's name on it, unless the server wrote one itself. */
  sign(result: Json, caller: Caller): Json {
    if (!result.isObject) return result
    const own = result.get('_meta')
    if (own?.has(META.serverInfo)) return result
    this.#meta ??= this.#ask(caller)
    const meta = this.#meta
    if (!meta) return result
    const info = own?.isObject ? meta.get(META.serverInfo) : undefined
    return result.with('_meta', own && info ? own.with(META.serverInfo, info) : meta)
  }

  /** Sessions answer this themselves, and at once: the handshake is long over. */
  #ask(caller: Caller): Json | undefined {
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

/** Signs every result that comes back. */
export const signed =
  (introduction: Introduction, dispatch: Dispatch): Dispatch =>
  exchange =>
    dispatch(exchange.kind === 'notification' ? exchange : { ...exchange, sink: signingSink(introduction, exchange) })

const signingSink =
  (introduction: Introduction, { sink, caller }: Exchange): Exchange['sink'] =>
  frame =>
    sink(frame.kind === 'result' ? { kind: 'result', result: introduction.sign(frame.result, caller) } : frame)
