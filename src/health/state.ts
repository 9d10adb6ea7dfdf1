import { BREAK_AFTER, backoffMs, type ServerFault } from './circuit-breaker.ts'

/** How a server is, since when, and why. `tries` counts those since it was last well for a while. */
export type HealthState =
  | { readonly kind: 'connecting'; readonly since: number; readonly fault?: ServerFault }
  | { readonly kind: 'untried'; readonly since: number; readonly fault: ServerFault; readonly tries: number } // callers will see
  | { readonly kind: 'ready'; readonly since: number; readonly tries: number }
  | Degraded
  | Down
  | { readonly kind: 'disabled'; readonly since: number }
  | { readonly kind: 'unavailable'; readonly since: number; readonly fault: ServerFault }

/** It may answer, but something is wrong: a failure or two in a row, or it refuses what we ask. */
export interface Degraded {
  readonly kind: 'degraded'
  readonly since: number
  readonly fault: ServerFault
  readonly failures: number
  readonly failedAt: number
  readonly tries: number
}

/** Nobody is sent there until a try succeeds. */
export interface Down {
  readonly kind: 'down'
  readonly since: number
  readonly fault: ServerFault
  readonly tries: number
  readonly retryAt: number
}

/** What was seen of a server. */
export type HealthEvent =
  | { readonly kind: 'answered' }
  | { readonly kind: 'failed'; readonly fault: ServerFault; readonly begun: number } // a call or a look
  | { readonly kind: 'missed'; readonly fault: ServerFault } // a try: the first one, or one of a server that was down
  | { readonly kind: 'refused'; readonly fault: ServerFault } // a try: it is there, and says no
  | { readonly kind: 'late'; readonly fault: ServerFault } // the first try lasts
  | { readonly kind: 'unasked'; readonly fault: ServerFault } // a try: we are nobody there, and sent nothing

/** When and by which chance something happens; keeps `step` pure. */
export interface Moment {
  readonly now: number
  readonly random: number // 0 to 1
}

const STEADY_MS = 60_000 // well for so long, an outage is not a repetition of the last one

/** The state after an event; the same object where nothing changed. */
export const step = (state: HealthState, event: HealthEvent, moment: Moment): HealthState => {
  if (state.kind === 'disabled' || state.kind === 'unavailable') return state
  switch (event.kind) {
    case 'answered':
      return state.kind === 'ready' ? state : { kind: 'ready', since: moment.now, tries: triesOf(state) }
    case 'failed':
      return fail(state, event.fault, event.begun, moment)
    case 'missed':
      return breakOff(state, event.fault, moment)
    case 'refused':
      return refuse(state, event.fault, moment)
    case 'late':
      return state.kind === 'connecting' ? { ...state, fault: event.fault } : state
    case 'unasked':
      return isTried(state) ? { kind: 'untried', since: moment.now, fault: event.fault, tries: triesOf(state) } : state
  }
}

type Living = Exclude<HealthState, { kind: 'disabled' | 'unavailable' }>

/** Calls that fail together are one failure: only what was begun after the last one is the next in a row. */
const fail = (state: Living, fault: ServerFault, begun: number, moment: Moment): HealthState => {
  if (state.kind === 'down' || state.kind === 'connecting') return state // the tries decide
  if (state.kind === 'degraded' && begun < state.failedAt) return state
  const failures = state.kind === 'degraded' ? state.failures + 1 : 1
  if (failures >= BREAK_AFTER) return breakOff(state, fault, moment)
  const since = state.kind === 'degraded' ? state.since : moment.now
  return { kind: 'degraded', since, fault, failures, failedAt: moment.now, tries: triesNow(state, moment.now) }
}

const breakOff = (state: Living, fault: ServerFault, { now, random: dice }: Moment): Down => {
  const tries = triesNow(state, now) + 1
  const since = state.kind === 'down' ? state.since : now
  return { kind: 'down', since, fault, tries, retryAt: now + Math.max(backoffMs(tries, dice), fault.retryMs ?? 0) }
}

const refuse = (state: Living, fault: ServerFault, { now }: Moment): HealthState => {
  if (state.kind === 'ready') return state // others are served
  if (state.kind === 'degraded') return { ...state, fault, failures: 0 }
  return { kind: 'degraded', since: now, fault, failures: 0, failedAt: now, tries: triesOf(state) }
}

/** Whether a try was to decide how it is. */
const isTried = ({ kind }: Living): boolean => kind === 'connecting' || kind === 'down'

const triesOf = (state: Living): number => (state.kind === 'connecting' ? 0 : state.tries)

const triesNow = (state: Living, now: number): number =>
  state.kind === 'ready' && now - state.since >= STEADY_MS ? 0 : triesOf(state)

/** Whether calls may go there. */
export const isUp = ({ kind }: HealthState): boolean => !['down', 'disabled', 'unavailable'].includes(kind)

export const faultIn = (state: HealthState): ServerFault | undefined => ('fault' in state ? state.fault : undefined)
