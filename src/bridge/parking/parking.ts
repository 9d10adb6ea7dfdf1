import { randomBytes } from 'node:crypto'
import { principalKey } from '../../protocol/callers.ts'
import { deliver } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { Quota } from '../../protocol/quota.ts'
import { Json } from '../../wire/json/json.ts'
import { mintId, openId } from '../../wire/sealed-id.ts'
import { withoutQuestions } from '../client-questions.ts'
import { ParkedCall } from './parked-call.ts'

const STATE = /^gw2\.([0-9a-f]+)\.(\d+)$/ // the sealed id of the call, and its round
const PER_PRINCIPAL = 1000
const BYTES_PER_PRINCIPAL = 64 * 1024 * 1024 // a parked call keeps its request alive
const TOTAL_SHARES = 10 // the total limit, in limits of one principal

/** The replica that a call is parked at. */
export interface ParkingHome {
  readonly keys: readonly [Uint8Array, ...Uint8Array[]] // of ids: the first seals, all of them open
  readonly self: () => string // the name of this replica
  /** Sends a retry to the replica that has parked its call; `onGone` is called instead if that replica is gone. */
  readonly send: (home: string, server: string, exchange: Exchange, onGone: () => void) => void
}

const alone = (): ParkingHome => ({
  keys: [randomBytes(32)],
  self: () => '',
  send: (_home, _server, _exchange, onGone) => onGone(),
})

export interface ParkingOptions {
  readonly questionTtlMs: number
  readonly principalParkedCalls?: number // limit of one principal; beyond it the oldest expires
  readonly home?: ParkingHome | undefined // undefined: there are no other replicas
}

/** The parked calls to one server. */
interface ServerParking {
  wrap(dispatch: Dispatch): Dispatch
  /** Resumes the parked call that the request names, without opening a peer; false if it names none. */
  resume(exchange: Exchange): boolean
}

/** Lets modern callers answer the questions of a running call: it is parked meanwhile, and not sent again. */
export interface Parking {
  /** A state of one server is invalid at every other. */
  at(server: string): ServerParking
  readonly size: number // parked calls at all servers
  close(): void
}

export const createParking = (options: ParkingOptions): Parking => {
  const { questionTtlMs, principalParkedCalls: perOwner = PER_PRINCIPAL, home: own = alone() } = options
  const parked = new Map<string, ParkedCall>()
  const limits = { perOwner, bytesPerOwner: BYTES_PER_PRINCIPAL, total: perOwner * TOTAL_SHARES }
  const quota = new Quota<ParkedCall>(limits)

  // Anonymous callers share one quota.
  const count = (call: ParkedCall): void => {
    quota.delete(call)
    const { principal } = call.origin.caller
    for (const evicted of quota.add(principalKey(principal), call, call.bytes)) evicted.expire()
  }

  const forget = (call: ParkedCall): void => {
    if (call.id !== undefined) parked.delete(call.id)
    quota.delete(call)
  }

  const hooks = {
    ttlMs: questionTtlMs,
    park: (call: ParkedCall): string => {
      // It cannot be guessed, and names this replica to the others.
      call.id ??= mintId(own.keys[0], 'question', { home: own.self(), workspace: call.origin.caller.workspace })
      parked.set(call.id, call)
      count(call)
      return `gw2.${call.id}.${call.round}`
    },
    grew: (call: ParkedCall): void => {
      if (parked.has(call.id ?? '')) count(call) // otherwise it has expired and is about to end
    },
    ended: forget,
  }

  /** A state is valid for the request that was parked, at its server and in its latest round, with any answers. */
  const find = (id: string, round: string, exchange: Exchange, server: string): ParkedCall | undefined => {
    const call = parked.get(id)
    if (call?.server !== server || String(call.round) !== round || call.isExpired) return undefined
    return identityOf(call.origin) === identityOf(exchange) ? call : undefined
  }

  /** Sends the retry to the replica that has parked the call; false if it is this one, or if none has minted the id. */
  const resumeElsewhere = (id: string, exchange: Exchange, server: string): boolean => {
    if (parked.has(id)) return false
    const minted = openId(own.keys, 'question', id)
    if (!minted || minted.home === own.self() || minted.workspace !== exchange.caller.workspace) return false
    own.send(minted.home, server, exchange, () => {
      void deliver(exchange.sink, { kind: 'failure', error: CALL_LOST })
    })
    return true
  }

  const resume = (exchange: Exchange, server: string): boolean => {
    const state = methodInfo(exchange.method)?.asks ? exchange.params.get('requestState')?.asString() : undefined
    const [, id, round = ''] = (state !== undefined && STATE.exec(state)) || []
    if (id === undefined) return false
    const call = find(id, round, exchange, server)
    if (!call) return resumeElsewhere(id, exchange, server)
    forget(call) // it is attached again, so the quota must not expire it
    call.resume(exchange)
    return true
  }

  const at = (server: string): ServerParking => ({
    resume: exchange => resume(exchange, server),
    wrap: dispatch => exchange => {
      if (!methodInfo(exchange.method)?.asks) return dispatch({ ...exchange, sink: withoutQuestions(exchange) })
      if (!exchange.params.has('requestState')) return new ParkedCall(server, exchange, hooks).start(dispatch)
      if (!resume(exchange, server)) void deliver(exchange.sink, { kind: 'failure', error: INVALID_STATE })
    },
  })

  const close = (): void => {
    for (const call of [...parked.values()]) call.end({ kind: 'closing' })
  }

  return {
    at,
    get size() {
      return parked.size
    },
    close,
  }
}

const INVALID_STATE = rpcError(
  'invalidParams',
  'Invalid or expired requestState: send the request again without it',
  Json.of({ reason: 'invalid_request_state' }),
)

/** The answer to a retry whose call was parked at a replica that is gone. */
const CALL_LOST = rpcError(
  'invalidParams',
  'The call that asked this is lost: the gateway process that held it has ended. Send the request again without requestState',
  Json.of({ reason: 'call_lost' }),
)

/** Equal for the same request of the same principal. */
const identityOf = ({ caller, method, params }: Exchange): string => {
  const target = params.get('name') ?? params.get('uri')
  const args = canonical(params.get('arguments')?.toValue() ?? null)
  return JSON.stringify([caller.principal ?? '', caller.workspace, method, target?.asString() ?? '', args])
}

/** Sorts members: a client may write them in another order in its retry. */
const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical)
  if (value === null || typeof value !== 'object') return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, canonical(inner)])
}
