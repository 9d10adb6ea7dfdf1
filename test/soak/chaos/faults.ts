import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom, subSeed } from '../fuzz/random.ts'
import type { GatewayProgram } from './gateway-program.ts'

export type FaultKind = 'kill' | 'stop' | 'term' | 'postgres'

/** One fault, decided before the run begins. */
export interface Fault {
  readonly kind: FaultKind
  readonly victim: number // index of the gateway
  readonly waitMs: number // before it
  readonly forMs: number // until the victim runs again
}

/** How long a victim is away: the ranges it is drawn from, in turn. A lease is 6 s. */
const AWAY_MS: Readonly<Record<FaultKind, readonly (readonly [from: number, to: number])[]>> = {
  kill: [[0, 500]],
  term: [[0, 200]],
  stop: [
    [500, 2_500],
    [8_000, 10_000],
  ],
  postgres: [
    [0, 1_000],
    [3_000, 5_000],
  ],
}
const WAIT_MS = [300, 3_000] as const

/** The faults of a run: the same seed makes the same ones. */
export const planFaults = (kind: FaultKind, count: number, gateways: number, seed: number): Fault[] => {
  const random = createRandom(subSeed(seed, 0xfa17))
  const between = ([from, to]: readonly [number, number]): number => from + random.below(to - from + 1)
  return Array.from({ length: count }, (_, at) => ({
    kind,
    victim: kind === 'term' ? at % gateways : random.below(gateways),
    waitMs: between(WAIT_MS),
    forMs: between(AWAY_MS[kind][at % AWAY_MS[kind].length] ?? [0, 0]),
  }))
}

/** What faults are done to. */
export interface Victims {
  readonly gateways: readonly GatewayProgram[]
  readonly postgres?: { kill(): Promise<void>; restart(): Promise<void> } | undefined
}

/** From the signal until the victim runs again. */
export interface FaultTime {
  readonly beganAt: number
  readonly endedAt: number
}

/** Does one fault, and waits until the victim runs again. */
export const inflict = async ({ kind, victim, waitMs, forMs }: Fault, victims: Victims): Promise<FaultTime> => {
  await sleep(waitMs)
  const gateway = victims.gateways[victim]
  const beganAt = Date.now()
  if (kind === 'postgres') {
    await victims.postgres?.kill()
    await sleep(forMs)
    await victims.postgres?.restart()
  } else if (kind === 'stop') {
    gateway?.signal('SIGSTOP')
    await sleep(forMs)
    gateway?.signal('SIGCONT')
  } else {
    gateway?.signal(kind === 'kill' ? 'SIGKILL' : 'SIGTERM')
    await gateway?.ended()
    await sleep(forMs)
    await gateway?.start()
  }
  return { beganAt, endedAt: Date.now() }
}
