import { Json } from '../wire/json/json.ts'
import { NEVER, type Signal } from './cancellation.ts'
import { RpcFailure } from './errors.ts'
import type { Caller, Dispatch } from './exchange.ts'

const MOST_PAGES = 64

/** Sends one request of our own and settles with its result; rejects with RpcFailure, or when nobody waits any more. */
export const ask = (
  dispatch: Dispatch,
  caller: Caller,
  method: string,
  params: Json = Json.empty,
  signal: Signal = NEVER,
): Promise<Json> =>
  new Promise((resolve, reject) => {
    const forget = signal.onAbort(() => reject(new Error('Nobody waits any more')))
    dispatch({
      kind: 'request',
      method,
      params,
      caller,
      signal,
      sink: frame => {
        if (frame.kind !== 'result' && frame.kind !== 'failure') return
        forget()
        if (frame.kind === 'result') resolve(frame.result)
        else reject(new RpcFailure(frame.error))
      },
    })
  })

/** The items of a list, page after page as they are wanted; a server whose cursors never end is left after a while. */
export async function* itemsOf(member: string, page: (params: Json) => Promise<Json>): AsyncGenerator<Json> {
  const seen = new Set<string>()
  let cursor: Json | undefined
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const list = await page(cursor ? Json.of({ cursor }) : Json.empty)
    yield* list.get(member)?.elements() ?? []
    cursor = list.get('nextCursor')
    const text = cursor?.asString()
    if (text === undefined || seen.has(text)) return
    seen.add(text)
  }
}
