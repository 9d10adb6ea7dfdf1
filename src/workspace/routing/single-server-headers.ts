import type { RpcError } from '../../protocol/errors.ts'
import type { Exchange } from '../../protocol/exchange.ts'
import { mirrorsParams } from '../../protocol/param-headers.ts'
import { isModern } from '../../protocol/revisions.ts'
import { listItems, sendRequest } from '../../protocol/send-request.ts'
import { Json } from '../../wire/json/json.ts'
import type { LearntServer } from '../catalog/learnt-server.ts'
import type { Member } from '../member.ts'
import { checkCallHeaders, isAnnotated } from './call-headers.ts'

const NO_TOOLS: ReadonlyMap<string, Json> = new Map()

/**
 * Compares headers with arguments (`x-mcp-header`) where nothing behind the gateway can: a server over stdio or of a legacy
 * revision does not see the headers. The returned function is for calls; undefined means that nothing is to be checked.
 */
export const createHeaderCheck = ({ learnt, isRemote, bridged }: Member) => {
  const tools = new WeakMap<LearntServer, ReadonlyMap<string, Json>>() // those with annotations, by name

  const toolsOf = (server: LearntServer): ReadonlyMap<string, Json> => {
    const known = tools.get(server)
    if (known) return known
    const items = isRemote && isModern(server.revision) ? [] : (server.lists.tools?.items ?? [])
    const annotated = items.filter(({ native }) => isAnnotated(native))
    const found = annotated.length === 0 ? NO_TOOLS : new Map(annotated.map(item => [item.original, item.native]))
    tools.set(server, found)
    return found
  }

  /** By the list of this moment: the one that the gateway has learnt may be outdated. */
  const confirm = async ({ caller }: Exchange, name: string, args: Json): Promise<RpcError | undefined> => {
    const { dispatch } = await bridged.open(caller)
    for await (const tool of listItems('tools', page => sendRequest(dispatch, caller, 'tools/list', page)))
      if (tool.get('name')?.asString() === name) return checkCallHeaders(caller, tool, args)
    return undefined
  }

  return (exchange: Exchange, name: string): Promise<RpcError | undefined> | undefined => {
    const server = mirrorsParams(exchange.caller) ? learnt?.get() : undefined
    const tool = server && toolsOf(server).get(name)
    if (!tool) return undefined
    const args = exchange.params.get('arguments') ?? Json.empty
    if (!checkCallHeaders(exchange.caller, tool, args)) return undefined
    return confirm(exchange, name, args).catch(() => undefined) // the call itself shows what is wrong with the server
  }
}
