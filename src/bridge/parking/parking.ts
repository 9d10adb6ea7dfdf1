import { createHash, randomUUID } from 'node:crypto'
import { deliver } from '../../protocol/deliver.ts'
import { rpcError } from '../../protocol/errors.ts'
import type { Dispatch, Exchange } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import { Quota } from '../../protocol/quota.ts'
import { Json } from '../../wire/json/json.ts'
import { createKeyring, type Keyring, seal, unseal } from '../../wire/seal.ts'
import { withoutQuestions } from '../client-questions.ts'
import { ParkedCall } from './parked-call.ts'

const PREFIX = 'gw1.'
const PER_PRINCIPAL = 1000
const BYTES_PER_PRINCIPAL = 64 * 1024 * 1024 // a parked call keeps its request alive
const TOTAL_SHARES = 10 // the total limit, in limits of one principal
const KEY_MS = 6 * 60 * 60_000 // until the key is replaced

/** Everything but the lifetime of a question has a default. */
export interface ParkingOptions {
  readonly questionTtlMs: number
  readonly principalParkedCalls?: number // limit of one principal; beyond it the oldest expires
  readonly node?: string // the name of this process among those that share the keys
  readonly keys?: () => Keyring // absent: random keys, so that a restart invalidates every state
  readonly now?: () => number
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
  close(): void
}

export const createParking = (options: ParkingOptions): Parking => {
  const { questionTtlMs, principalParkedCalls: perOwner = PER_PRINCIPAL } = options
  const { node = randomUUID(), now = () => Date.now() } = options
  const keys = options.keys ?? createKeyring({ everyMs: KEY_MS, keepMs: questionTtlMs, now })
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

  const hooksOf = (server: string) => ({
    ttlMs: questionTtlMs,
    park: (call: ParkedCall): string => {
      parked.set(call.id, call)
      count(call)
      const state = Json.of({
        call: call.id,
        round: call.round,
        until: now() + questionTtlMs,
        of: bindingOf(call.origin, server),
        node,
      })
      return PREFIX + seal(keys(), state.toBytes())
    },
    grew: (call: ParkedCall): void => {
      if (parked.has(call.id)) count(call) // otherwise it has expired and is about to end
    },
    ended: forget,
  })

  const find = (state: string, exchange: Exchange, server: string): ParkedCall | undefined => {
    const bytes = state.startsWith(PREFIX) ? unseal(keys(), state.slice(PREFIX.length)) : undefined
    if (!bytes) return undefined
    const claims = Json.parse(bytes)
    const call = parked.get(claims.get('call')?.asString() ?? '')
    const isValid =
      call !== undefined &&
      call.round === claims.get('round')?.asNumber() &&
      claims.get('node')?.asString() === node && // the call is parked in that process
      now() <= (claims.get('until')?.asNumber() ?? 0) &&
      claims.get('of')?.asString() === bindingOf(exchange, server)
    return isValid ? call : undefined
  }

  const resume = (exchange: Exchange, server: string): boolean => {
    const state = methodInfo(exchange.method)?.asks ? exchange.params.get('requestState')?.asString() : undefined
    const call = state === undefined ? undefined : find(state, exchange, server)
    if (!call) return false
    forget(call) // it is attached again, so the quota must not expire it
    call.resume(exchange)
    return true
  }

  const at = (server: string): ServerParking => {
    const hooks = hooksOf(server)
    return {
      resume: exchange => resume(exchange, server),
      wrap: dispatch => exchange => {
        if (!methodInfo(exchange.method)?.asks) return dispatch({ ...exchange, sink: withoutQuestions(exchange) })
        if (!exchange.params.has('requestState')) return new ParkedCall(randomUUID(), exchange, hooks).start(dispatch)
        if (!resume(exchange, server)) void deliver(exchange.sink, { kind: 'failure', error: INVALID_STATE })
      },
    }
  }

  const close = (): void => {
    for (const call of [...parked.values()]) call.end({ kind: 'closing' })
  }

  return { at, close }
}

const INVALID_STATE = rpcError(
  'invalidParams',
  'Invalid or expired requestState: send the request again without it',
  Json.of({ reason: 'invalid_request_state' }),
)

/** A state is valid for one principal, workspace, server and request, with any answers. */
const bindingOf = ({ caller, method, params }: Exchange, server: string): string => {
  const hash = createHash('sha256')
  const target = params.get('name') ?? params.get('uri')
  const parts = [caller.principal ?? '', caller.workspace, server, method, target?.asString() ?? '']
  hash.update(JSON.stringify([...parts, canonical(params.get('arguments')?.toValue() ?? null)]))
  return hash.digest('base64url')
}

/** Sorts members: a client may write them in another order in its retry. */
const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical)
  if (value === null || typeof value !== 'object') return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, canonical(inner)])
}
