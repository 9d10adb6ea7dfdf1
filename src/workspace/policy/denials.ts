import type { Exchange } from '../../protocol/exchange.ts'
import type { MergedList } from '../catalog/merged-list.ts'
import { splitName } from '../catalog/names.ts'
import type { RouteContext } from '../routing/route-context.ts'

// A client is not told that an item is hidden from it: it gets the error for one that does not exist. What is recorded of
// the request says so.

/** Records whether a tool or prompt that is not in the caller's list is hidden from it by a policy or an overlay. */
export const recordHiddenName = (
  context: RouteContext,
  { caller, record }: Exchange,
  name: string,
  list: MergedList,
): void => {
  if (!record) return
  const rules = context.rulesOf(caller)
  const prefixed = splitName(name, context.serversByName)
  const bare = context.members.map(({ server }) => ({ server, name }))
  const isDenied =
    prefixed.some(({ server }) => !rules.allowsServer(server)) ||
    [...prefixed, ...bare].some(place => list.visibility(place.server, place.name) === 'hidden')
  if (isDenied) record.denied()
}

/** Records whether a policy forbids to read a resource. */
export const recordHiddenUri = (context: RouteContext, { caller, record }: Exchange, uri: string): void => {
  if (!record) return
  const rules = context.rulesOf(caller)
  if (!rules.isOpen && context.members.some(({ server }) => !rules.allows('resources', server, uri))) record.denied()
}
