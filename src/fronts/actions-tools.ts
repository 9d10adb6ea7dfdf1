import type { Signal } from '../protocol/abort.ts'
import { RpcFailure } from '../protocol/errors.ts'
import type { Caller } from '../protocol/exchange.ts'
import { Json } from '../wire/json.ts'
import type { House } from './visit.ts'

const MOST_PAGES = 64

/** The tools of a workspace as this caller may list them, page by page; rejects with RpcFailure. */
export async function* toolsOf(house: House, caller: Caller, signal: Signal): AsyncGenerator<Json> {
  let cursor: Json | undefined
  for (let page = 0; page < MOST_PAGES; page++) {
    const list = await ask(house, caller, signal, cursor ? Json.of({ cursor }) : Json.empty)
    yield* list.get('tools')?.elements() ?? []
    cursor = list.get('nextCursor')
    if (!cursor || cursor.kind === 'null') return
  }
}

/** Whether a workspace lists a tool under one of these names. */
export const hasTool = async (
  house: House,
  caller: Caller,
  signal: Signal,
  names: readonly string[],
): Promise<boolean> => {
  for await (const tool of toolsOf(house, caller, signal))
    if (names.includes(tool.get('name')?.asString() ?? '')) return true
  return false
}

const ask = (house: House, caller: Caller, signal: Signal, params: Json): Promise<Json> =>
  new Promise((resolve, reject) => {
    const forget = signal.onAbort(() => reject(new Error('Nobody waits any more')))
    house.dispatch({
      kind: 'request',
      method: 'tools/list',
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
