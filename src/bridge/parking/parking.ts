import { deliver } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { Quota } from '../../protocol/quota.ts'
import { Json } from '../../wire/json/json.ts'
import { withoutQuestions } from '../client-questions.ts'
import { ParkedCall } from './parked-call.ts'

const STATE = /^gw1\.([\w-]+)\.(\d+)$/ // the call and its round
const PER_PRINCIPAL = 1000
const BYTES_PER_PRINCIPAL = 64 * 1024 * 1024 // a parked call keeps its request alive
const TOTAL_SHARES = 10 // the total limit, in limits of one principal

export interface ParkingOptions {
  readonly questionTtlMs: number
  readonly principalParkedCalls?: number // limit of one principal; beyond it the oldest expires
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
  const { questionTtlMs, principalParkedCalls: perOwner = PER_PRINCIPAL } = options
  const parked = new Map<string, ParkedCall>()
  const limits = { perOwner, bytesPerOwner: BYTES_PER_PRINCIPAL, total: perOwner * TOTAL_SHARES }
  const quota = new Quota<ParkedCall>(limits)

  // Anonymous callers share one quota.
  const count = (call: ParkedCall): void => {
    quota.delete(call)
    const { principal } = call.origin.caller
    for (const evicted of quota.add(principal === undefined ? '' : `=${principal}`, call, call.bytes)) evicted.expire()
  }

  const forget = (call: ParkedCall): void => {
    parked.delete(call.id)
    quota.delete(call)
  }

  const hooks = {
    ttlMs: questionTtlMs,
    park: (call: ParkedCall): string => {
      parked.set(call.id, call)
      count(call)
      return `gw1.${call.id}.${call.round}`
    },
    grew: (call: ParkedCall): void => {
      if (parked.has(call.id)) count(call) // otherwise it has expired and is about to end
    },
    ended: forget,
  }

  /** A state is valid for the request that was parked, at its server and in its latest round, with any answers. */
  const find = (state: string, exchange: Exchange, server: string): ParkedCall | undefined => {
    const [, id = '', round] = STATE.exec(state) ?? []
    const call = parked.get(id)
    if (call?.server !== server || String(call.round) !== round || call.isExpired) return undefined
    return identityOf(call.origin) === identityOf(exchange) ? call : undefined
  }

  const resume = (exchange: Exchange, server: string): boolean => {
    const state = methodInfo(exchange.method)?.asks ? exchange.params.get('requestState')?.asString() : undefined
    const call = state === undefined ? undefined : find(state, exchange, server)
    if (!call) return false
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
