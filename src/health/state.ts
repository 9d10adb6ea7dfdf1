import { NoAnswer, type RpcError, rpcError } from '../protocol/errors.ts'
import { backoffMs } from '../std/time.ts'
import { Json } from '../wire/json/json.ts'

/** Why a server is not healthy: a code for programs, and a message for people that names the server. */
export interface ServerFault {
  readonly reason: string
  readonly message: string
  readonly retryMs?: number | undefined // a retry before this cannot succeed
}

/** The health of a server. `tries` counts the failed probes since it was last healthy for a minute. */
export type HealthState =
  | { readonly kind: 'connecting'; readonly since: number; readonly fault?: ServerFault }
  | { readonly kind: 'untried'; readonly since: number; readonly fault: ServerFault; readonly tries: number } // only a call can tell
  | { readonly kind: 'ready'; readonly since: number; readonly tries: number }
  | Degraded
  | Down
  | { readonly kind: 'disabled'; readonly since: number }
  | { readonly kind: 'unavailable'; readonly since: number; readonly fault: ServerFault }

/** The server may answer, but it failed once or twice in a row, or it rejects the gateway's own requests. */
interface Degraded {
  readonly kind: 'degraded'
  readonly since: number
  readonly fault: ServerFault
  readonly failures: number
  readonly failedAt: number
  readonly tries: number
}

/** The circuit is open: no call is sent until a probe succeeds, unless only a replica is missing. */
interface Down {
  readonly kind: 'down'
  readonly since: number
  readonly fault: ServerFault
  readonly tries: number
  readonly retryAt: number
}

/** What the gateway observed of a server. */
export type HealthEvent =
  | { readonly kind: 'answered' }
  | { readonly kind: 'failed'; readonly fault: ServerFault; readonly begun: number } // a call or a liveness check
  | { readonly kind: 'probeFailed'; readonly fault: ServerFault } // the first probe, or one of a server that was down
  | { readonly kind: 'probeRejected'; readonly fault: ServerFault } // the server is there and rejects the gateway
  | { readonly kind: 'probeSlow'; readonly fault: ServerFault } // the first probe has not ended yet
  | { readonly kind: 'notProbed'; readonly fault: ServerFault } // the gateway has no credentials, and sent nothing

/** The time and the random number of an event: `step` stays pure. */
interface Moment {
  readonly now: number
  readonly random: number // 0 to 1
}

/** Consecutive failures that open the circuit; each must be of a call begun after the failure before. */
export const BREAK_AFTER = 3
const BACKOFF = { firstMs: 1000, longestMs: 60_000 }
const NO_REPLICA = 'no_replica' // this replica knows at once when one has joined: asking again costs nothing
const REPLICA_MS = 1000
const STEADY_MS = 60_000 // healthy for this long, the next outage starts with the shortest backoff

/** The state after an event; the same object where nothing changed. */
export const step = (state: HealthState, event: HealthEvent, moment: Moment): HealthState => {
  if (state.kind === 'disabled' || state.kind === 'unavailable') return state
  switch (event.kind) {
    case 'answered':
      return state.kind === 'ready' ? state : { kind: 'ready', since: moment.now, tries: triesOf(state) }
    case 'failed':
      return countFailure(state, event.fault, event.begun, moment)
    case 'probeFailed':
      return openCircuit(state, event.fault, moment)
    case 'probeRejected':
      return degrade(state, event.fault, moment)
    case 'probeSlow':
      return state.kind === 'connecting' ? { ...state, fault: event.fault } : state
    case 'notProbed':
      if (state.kind !== 'connecting' && state.kind !== 'down') return state
      return { kind: 'untried', since: moment.now, fault: event.fault, tries: triesOf(state) }
  }
}

type ActiveState = Exclude<HealthState, { kind: 'disabled' | 'unavailable' }>

/** Calls that fail together are one failure: only a call begun after the last failure is the next in a row. */
const countFailure = (state: ActiveState, fault: ServerFault, begun: number, moment: Moment): HealthState => {
  if (state.kind === 'down' || state.kind === 'connecting') return state // the probes decide
  if (state.kind === 'degraded' && begun < state.failedAt) return state
  const failures = state.kind === 'degraded' ? state.failures + 1 : 1
  if (failures >= BREAK_AFTER) return openCircuit(state, fault, moment)
  const since = state.kind === 'degraded' ? state.since : moment.now
  return { kind: 'degraded', since, fault, failures, failedAt: moment.now, tries: recentTries(state, moment.now) }
}

const openCircuit = (state: ActiveState, fault: ServerFault, { now, random }: Moment): Down => {
  const tries = recentTries(state, now) + 1
  const since = state.kind === 'down' ? state.since : now
  const nextMs = fault.reason === NO_REPLICA ? REPLICA_MS : backoffMs(BACKOFF, tries - 1, random)
  const waitMs = Math.max(nextMs, fault.retryMs ?? 0)
  return { kind: 'down', since, fault, tries, retryAt: now + waitMs }
}

const degrade = (state: ActiveState, fault: ServerFault, { now }: Moment): HealthState => {
  if (state.kind === 'ready') return state // other callers are served
  if (state.kind === 'degraded') return { ...state, fault, failures: 0 }
  return { kind: 'degraded', since: now, fault, failures: 0, failedAt: now, tries: triesOf(state) }
}

const triesOf = (state: ActiveState): number => (state.kind === 'connecting' ? 0 : state.tries)

const recentTries = (state: ActiveState, now: number): number =>
  state.kind === 'ready' && now - state.since >= STEADY_MS ? 0 : triesOf(state)

/** Whether calls may be sent to the server. */
export const isUp = (state: HealthState): boolean =>
  state.kind === 'down' ? state.fault.reason === NO_REPLICA : !['disabled', 'unavailable'].includes(state.kind)

export const faultIn = (state: HealthState): ServerFault | undefined => ('fault' in state ? state.fault : undefined)

const READY_MS = 30_000
const FAILING_MS = 1000
const REJECTED_MS = 60_000

/** Milliseconds until the next probe; undefined where only a call may lead to one. `random` is 0 to 1. */
export const nextProbeMs = (state: HealthState, now: number, random: number): number | undefined => {
  const jitter = 0.75 + random / 2 // servers that started together are not probed together
  switch (state.kind) {
    case 'ready':
      return READY_MS * jitter
    case 'degraded':
      return (state.failures > 0 ? FAILING_MS : REJECTED_MS) * jitter
    case 'down':
      return Math.max(0, state.retryAt - now)
    default:
      return undefined
  }
}

/** Failures of the network or of the machine. An error the server sent, or the rejection of one caller, is none. */
const BREAKING: ReadonlySet<string> = new Set([
  'upstream_unreachable',
  'upstream_timeout',
  'upstream_stream_lost',
  'upstream_lost',
])

export const isBreaking = ({ reason }: ServerFault): boolean => BREAKING.has(reason)

const CLOSING = 'closing' // the gateway has ended the session: no failure of the server, and no answer of it

/** The fault behind an error; undefined if the server itself sent the error. */
export const serverFaultOf = (error: RpcError): ServerFault | undefined => {
  if (!(error instanceof NoAnswer)) return undefined
  const reason = error.isClosing ? CLOSING : (error.data?.get('reason')?.asString() ?? 'upstream_lost')
  return { reason, message: error.summary, retryMs: error.retryMs }
}

/** The error of calls to a server that is down: what happened, since when, and when the gateway retries. */
export const downError = (
  server: string,
  { fault, since, retryAt }: Pick<Down, 'fault' | 'since' | 'retryAt'>,
  now: number,
): RpcError => {
  const ms = Math.max(0, retryAt - now)
  const next = ms > 0 ? `is tried again in ${Math.ceil(ms / 1000)} s` : 'is being tried again now'
  const message = `${fault.message}. It has been down since ${new Date(since).toISOString()} and ${next}`
  const data = Json.of({ reason: fault.reason, upstream: server, retryAfterMs: Math.round(ms) })
  return new NoAnswer(rpcError('internal', message, data), { summary: fault.message, retryMs: ms })
}
