import type { Ready } from './contestant.ts'
import type { Figures, Job } from './load.ts'
import { SCENARIOS } from './scenarios.ts'

/** V8 goes on optimising for thousands of calls; the wait for a slow contestant has an end. */
export interface Warm {
  readonly calls: number
  readonly leastMs: number
  readonly mostMs: number
}

export type Time = (job: Job) => Promise<Figures>

/** Calls a contestant in every scenario before it is timed. */
export const warmUp = async (
  target: Ready,
  time: Time,
  connections: number,
  { calls, leastMs, mostMs }: Warm,
): Promise<void> => {
  for (const { name: scenario } of SCENARIOS) {
    const start = Date.now()
    let done = 0
    for (let passed = 0; passed < leastMs || (done < calls && passed < mostMs); passed = Date.now() - start) {
      const job = { target, dialect: target.dialect, scenario, connections, milliseconds: Math.min(400, mostMs) }
      done += (await time(job)).calls
    }
  }
}

/** The list from another first element on, so that no contestant is always timed after the same one. */
export const rotate = <T>(list: readonly T[], by: number): T[] => [
  ...list.slice(by % list.length),
  ...list.slice(0, by % list.length),
]
