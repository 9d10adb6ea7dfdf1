import type { Signal } from '../protocol/abort.ts'
import type { Caller } from '../protocol/exchange.ts'
import { ask, itemsOf } from '../protocol/listing.ts'
import type { Json } from '../wire/json.ts'
import type { House } from './visit.ts'

/** The tools of a workspace as this caller may list them, page by page; rejects with RpcFailure. */
export const toolsOf = (house: House, caller: Caller, signal: Signal): AsyncGenerator<Json> =>
  itemsOf('tools', params => ask(house.dispatch, caller, 'tools/list', params, signal))

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
