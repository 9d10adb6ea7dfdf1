import type { Signal } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { ask, itemsOf } from '../../protocol/listing.ts'
import { META } from '../../protocol/meta.ts'
import type { Json } from '../../wire/json/json.ts'
import type { FrontContext } from '../http/front-request.ts'

/** The tools of a workspace as this caller may list them, page by page; rejects with RpcFailure. */
export const toolsOf = (house: FrontContext, caller: Caller, signal: Signal): AsyncGenerator<Json> =>
  itemsOf('tools', params => ask(house.dispatch, caller, 'tools/list', params, signal))

/** Whether a workspace lists a tool that has one of these names, here or at its server. */
export const hasTool = async (
  house: FrontContext,
  caller: Caller,
  signal: Signal,
  names: readonly string[],
): Promise<boolean> => {
  for await (const tool of toolsOf(house, caller, signal)) {
    if (formsOf(tool).some(form => names.includes(form))) return true
  }
  return false
}

/** What a tool may be called: as it is listed, or by its own name where it is listed under another. */
const formsOf = (tool: Json): string[] => {
  const listed = tool.get('name')?.asString() ?? ''
  const origin = tool.at('_meta', META.origin)
  const [server, name] = [origin?.get('server')?.asString(), origin?.get('name')?.asString()]
  return name === undefined ? [listed] : [listed, name, `${server}/${name}`, `${server}__${name}`]
}
