import { Json } from '../wire/json/json.ts'
import { NEVER, type Signal } from './cancellation.ts'
import { RpcFailure } from './errors.ts'
import type { Caller, Dispatch } from './exchange.ts'

/** The longest list, in pages, that is read to its end. */
export const MAX_PAGES = 64

/** Sends a request of the gateway and resolves with its result. Rejects with RpcFailure, or if the signal is aborted. */
export const sendRequest = (
  dispatch: Dispatch,
  caller: Caller,
  method: string,
  params: Json = Json.empty,
  signal: Signal = NEVER,
): Promise<Json> =>
  new Promise((resolve, reject) => {
    const removeListener = signal.onAbort(() => reject(new Error('The request was cancelled')))
    dispatch({
      kind: 'request',
      method,
      params,
      caller,
      signal,
      sink: frame => {
        if (frame.kind !== 'result' && frame.kind !== 'failure') return
        removeListener()
        if (frame.kind === 'result') resolve(frame.result)
        else reject(new RpcFailure(frame.error))
      },
    })
  })

/** Why there is no next page to read: this was the last one, its cursor repeats, or there are too many. */
export type CursorEnd = 'last' | 'repeated' | 'too many'

/** Follows the cursors of one list. Bounded, because a server may repeat cursors or never end its list. */
export class CursorWalk {
  readonly #seen = new Set<string>()

  /** The cursor of the page after this one. */
  next(page: Json): { readonly cursor: string } | CursorEnd {
    const cursor = page.get('nextCursor')?.asString()
    if (cursor === undefined) return 'last'
    if (this.#seen.has(cursor)) return 'repeated'
    this.#seen.add(cursor)
    return this.#seen.size >= MAX_PAGES ? 'too many' : { cursor }
  }
}

/** The items of a list; each page is requested when its items are wanted. */
export async function* listItems(member: string, fetchPage: (params: Json) => Promise<Json>): AsyncGenerator<Json> {
  const walk = new CursorWalk()
  let params = Json.empty
  for (;;) {
    const page = await fetchPage(params)
    yield* page.get(member)?.elements() ?? []
    const next = walk.next(page)
    if (typeof next === 'string') return
    params = Json.of(next)
  }
}
