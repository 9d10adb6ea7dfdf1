import { deliver } from '../../protocol/deliver.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Json, Rival } from '../../wire/json/json.ts'
import { ambiguityError } from '../../wire/json-rpc.ts'

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

/** The members they read one level deeper, by method. */
const READ_WITHIN: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'completion/complete': { ref: ['type', 'name', 'uri'], argument: ['name', 'value'], context: ['arguments'] },
  'subscriptions/listen': {
    notifications: ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged', 'resourceSubscriptions'],
  },
}

/**
 * Checks every message before it reaches a workspace. A server might act on a request without an id, or read `Name` as
 * `name`, and so do something else than the policies have checked: such messages reach no server.
 */
export const createRequestCheck =
  (dispatch: Dispatch, log: Log): Dispatch =>
  exchange => {
    const { kind, method, caller, sink } = exchange
    if (kind === 'notification' && methodInfo(method)) {
      log.debug({ method, workspace: caller.workspace }, 'request without an id dropped')
      return
    }
    const error = checkSize(exchange) ?? checkMembers(exchange)
    if (!error) return dispatch(exchange)
    if (kind === 'request') void deliver(sink, { kind: 'failure', error })
    else log.debug({ method, workspace: caller.workspace }, 'notification with invalid params dropped')
  }

const LARGE = 64 * 1024
const COMPARED: readonly string[] = ['name', 'uri', 'ref', 'taskId'] // rules and routes compare them in several ways
const MOST_MEMBERS = 10_000

/** Rejects params that would take long to check; only large ones are looked at. */
const checkSize = ({ params }: Exchange): RpcError | undefined => {
  if (params.size <= LARGE) return undefined
  const long = COMPARED.find(key => (params.get(key)?.size ?? 0) > LARGE)
  if (long) return rpcError('invalidParams', `Invalid params: "${long}" must have at most ${LARGE} bytes`)
  if (params.memberCount <= MOST_MEMBERS) return undefined
  return rpcError(
    'invalidParams',
    `Invalid params: at most ${MOST_MEMBERS} members, but there are ${params.memberCount}`,
  )
}

/** Rejects members that a server might read as one that the gateway reads. */
const checkMembers = ({ method, params }: Exchange): RpcError | undefined => {
  // An extension may have a member `Name`; it is ambiguous only beside `name`.
  const read = methodInfo(method) ? READ : READ.filter(key => params.has(key))
  const within = Object.hasOwn(READ_WITHIN, method) ? READ_WITHIN[method] : undefined
  const rival = params.findAmbiguous(read) ?? (within && rivalWithin(params, within))
  return rival && rpcError('invalidParams', `Invalid params: ${ambiguityError(rival)}`)
}

const rivalWithin = (params: Json, within: Readonly<Record<string, readonly string[]>>): Rival | undefined => {
  for (const [member, keys] of Object.entries(within)) {
    const rival = params.get(member)?.findAmbiguous(keys)
    if (rival) return rival
  }
  return undefined
}
