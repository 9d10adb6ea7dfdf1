import type { HealthState } from './state.ts'

const LOOK_MS = 30_000
const DOUBTED_MS = 1000
const REFUSED_MS = 60_000

/** Milliseconds until a server is looked at again, undefined where only callers may wake it; `dice` is 0 to 1. */
export const nextProbeMs = (state: HealthState, now: number, dice: number): number | undefined => {
  switch (state.kind) {
    case 'ready':
      return spread(LOOK_MS, dice)
    case 'degraded':
      return spread(state.failures > 0 ? DOUBTED_MS : REFUSED_MS, dice)
    case 'down':
      return Math.max(0, state.retryAt - now)
    default:
      return undefined
  }
}

/** Three quarters to five quarters of it: what started together does not go on together. */
const spread = (ms: number, dice: number): number => ms * (0.75 + dice / 2)
