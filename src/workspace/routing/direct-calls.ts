import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import type { ToolUsage } from '../budget/tool-usage.ts'
import type { MergedList } from '../catalog/merged-list.ts'
import type { ListView } from '../catalog/merged-lists.ts'
import type { Member } from '../member.ts'

interface DirectCallsOptions {
  readonly member: Member
  readonly direct: Dispatch // forwards to the server
  readonly general: Dispatch // finds the tool in the list of the caller
  readonly lists: ListView
  readonly usage?: ToolUsage | undefined
}

const LIST_MS = 1000 // how long names are counted by the same list

/**
 * The route of calls where the only rules of a workspace of one server are about its list: they are forwarded as they would
 * be without rules. Callers whose token has a policy take the general path, and so do calls before the first list is known.
 */
export const createDirectCalls = ({ member, direct, general, lists, usage }: DirectCallsOptions): Dispatch => {
  let list: MergedList | undefined
  let nextListAt = 0

  /** Only names that are listed are counted: callers can make up any number of others. False if no list is known yet. */
  const count = (counted: ToolUsage, { caller, params }: Exchange): boolean => {
    const now = Date.now()
    if (now >= nextListAt) {
      list = lists.cached(caller, 'tools') ?? list
      nextListAt = now + LIST_MS
    }
    const found = list?.find(params.get('name')?.asString() ?? '')
    if (found && !('candidates' in found)) counted.count(member.server, found.original)
    return list !== undefined
  }

  return exchange => {
    if (exchange.caller.policy || (usage && !count(usage, exchange))) return general(exchange)
    direct(exchange)
  }
}
