import { createHash, randomUUID } from 'node:crypto'
import { rpcError } from '../protocol/errors.ts'
import type { Dispatch, Exchange } from '../protocol/exchange.ts'
import { methodRow } from '../protocol/methods.ts'
import { Json } from '../wire/json.ts'
import { type Keyring, open, seal } from '../wire/seal.ts'
import { createSealKeys } from '../wire/seal-keys.ts'
import { ParkedCall } from './parked-call.ts'
import { refuseUndeclared } from './refusals.ts'

const PREFIX = 'gw1.'
const MOST_PARKED = 10_000
const KEY_MS = 6 * 60 * 60_000 // a key seals for so long

/** How calls are parked; what is not said has a default. */
export interface ParkingOptions {
  readonly questionTtlMs: number
  readonly mostParked?: number // beyond that the oldest expires
  readonly node?: string // this process among those who share the keys
  readonly keys?: () => Keyring // random ones when absent: after a restart an old state is refused like any foreign one
  readonly now?: () => number
}

/** Where the calls to one server are parked. */
interface ParkingPlace {
  wrap(dispatch: Dispatch): Dispatch
  /** Lets a parked call go on if that request is for one, without a server to send it to; else false. */
  resume(exchange: Exchange): boolean
}

/** Lets modern callers answer questions of live askers: the call is parked, never run again. */
export interface Parking {
  /** A state given at one server is good at no other. */
  at(server: string): ParkingPlace
  close(): void
}

export const createParking = (options: ParkingOptions): Parking => {
  const { questionTtlMs, mostParked = MOST_PARKED, node = randomUUID(), now = () => Date.now() } = options
  const keys = options.keys ?? createSealKeys({ everyMs: KEY_MS, keepMs: questionTtlMs, now })
  const parked = new Map<string, ParkedCall>()

  const hooksOf = (server: string) => ({
    ttlMs: questionTtlMs,
    park: (call: ParkedCall): string => {
      const oldest = parked.size >= mostParked ? parked.values().next().value : undefined
      oldest?.expire()
      parked.set(call.id, call)
      const state = Json.of({
        call: call.id,
        round: call.round,
        until: now() + questionTtlMs,
        of: bindingOf(call.origin, server),
        node,
      })
      return PREFIX + seal(keys(), state.toBytes())
    },
    gone: (call: ParkedCall): void => void parked.delete(call.id),
  })

  const find = (state: string, exchange: Exchange, server: string): ParkedCall | undefined => {
    const bytes = state.startsWith(PREFIX) ? open(keys(), state.slice(PREFIX.length)) : undefined
    if (!bytes) return undefined
    const claims = Json.parse(bytes)
    const call = parked.get(claims.get('call')?.asString() ?? '')
    const isValid =
      call !== undefined &&
      call.round === claims.get('round')?.asNumber() &&
      claims.get('node')?.asString() === node && // the call itself is parked there
      now() <= (claims.get('until')?.asNumber() ?? 0) &&
      claims.get('of')?.asString() === bindingOf(exchange, server)
    return isValid ? call : undefined
  }

  const resume = (exchange: Exchange, server: string): boolean => {
    const state = methodRow(exchange.method)?.asks ? exchange.params.get('requestState')?.asString() : undefined
    const call = state === undefined ? undefined : find(state, exchange, server)
    if (!call) return false
    parked.delete(call.id) // it runs again: nobody may expire it for want of room
    call.resume(exchange)
    return true
  }

  const at = (server: string): ParkingPlace => {
    const hooks = hooksOf(server)
    return {
      resume: exchange => resume(exchange, server),
      wrap: dispatch => exchange => {
        if (!methodRow(exchange.method)?.asks) return dispatch({ ...exchange, sink: refuseUndeclared(exchange) })
        if (!exchange.params.has('requestState')) return new ParkedCall(randomUUID(), exchange, hooks).start(dispatch)
        if (!resume(exchange, server)) void exchange.sink({ kind: 'failure', error: INVALID_STATE })
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

/** A state is good for one principal, one workspace, one server and one request, whatever its answers. */
const bindingOf = ({ caller, method, params }: Exchange, server: string): string => {
  const hash = createHash('sha256')
  const target = params.get('name') ?? params.get('uri')
  const parts = [caller.principal ?? '', caller.workspace, server, method, target?.asString() ?? '']
  hash.update(JSON.stringify([...parts, canonical(params.get('arguments')?.toValue() ?? null)]))
  return hash.digest('base64url')
}

/** The same data in the same order, however the client wrote it this time. */
const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical)
  if (value === null || typeof value !== 'object') return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, canonical(inner)])
}
