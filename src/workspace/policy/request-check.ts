import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { methodRow } from '../../protocol/methods.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Json, Rival } from '../../wire/json/json.ts'
import { ambiguous } from '../../wire/json-rpc.ts'

/** The members of params that routes, policies and overlays read. */
const READ: readonly string[] = [
  '_meta',
  'name',
  'uri',
  'arguments',
  'ref',
  'argument',
  'context',
  'notifications',
  'taskId',
  'cursor',
  'level',
]

/** What they read one level deeper, by method. */
const READ_WITHIN: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'completion/complete': { ref: ['type', 'name', 'uri'], argument: ['name', 'value'], context: ['arguments'] },
  'subscriptions/listen': {
    notifications: ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged', 'resourceSubscriptions'],
  },
}

/**
 * Stands before every workspace, whatever front a message came by. A server may act on a request that has no id, or take
 * `Name` for `name`, so that it does something else than what was judged here: neither reaches a server.
 */
export const createRequestCheck = (dispatch: Dispatch, log: Log): Dispatch => {
  return exchange => {
    const { kind, method, caller, sink } = exchange
    if (kind === 'notification' && methodRow(method)) {
      log.debug({ method, workspace: caller.workspace }, 'dropped a request that was sent as a notification')
      return
    }
    const error = checkSize(exchange) ?? checkMembers(exchange)
    if (!error) return dispatch(exchange)
    if (kind === 'request') void deliver(sink, { kind: 'failure', error })
    else log.debug({ method, workspace: caller.workspace }, 'dropped a notification with invalid params')
  }
}

const LARGE = 64 * 1024
const NAMES: readonly string[] = ['name', 'uri', 'ref', 'taskId'] // what rules and routes compare, each in several ways
const MOST_MEMBERS = 10_000

/** Refuses what would take long to judge. Only large params are looked at. */
const checkSize = ({ params }: Exchange): RpcError | undefined => {
  if (params.size <= LARGE) return undefined
  const long = NAMES.find(key => (params.get(key)?.size ?? 0) > LARGE)
  if (long) return rpcError('invalidParams', `Invalid params: "${long}" must have at most ${LARGE} bytes`)
  if (params.memberCount <= MOST_MEMBERS) return undefined
  return rpcError(
    'invalidParams',
    `Invalid params: at most ${MOST_MEMBERS} members, but there are ${params.memberCount}`,
  )
}

/** Refuses members that some servers take for one that is read here. */
const checkMembers = ({ method, params }: Exchange): RpcError | undefined => {
  // An extension may have a member of its own that is called `Name`; only beside `name` it is ambiguous.
  const read = methodRow(method) ? READ : READ.filter(key => params.has(key))
  const within = Object.hasOwn(READ_WITHIN, method) ? READ_WITHIN[method] : undefined
  const rival = params.rivalOf(read) ?? (within && rivalWithin(params, within))
  return rival && rpcError('invalidParams', `Invalid params: ${ambiguous(rival)}`)
}

const rivalWithin = (params: Json, within: Readonly<Record<string, readonly string[]>>): Rival | undefined => {
  for (const [member, keys] of Object.entries(within)) {
    const rival = params.get(member)?.rivalOf(keys)
    if (rival) return rival
  }
  return undefined
}
