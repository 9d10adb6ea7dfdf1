import type { ActiveCalls } from '../fronts/http/active-calls.ts'
import type { StateStore } from '../stores/state/state-store.ts'
import type { Log } from '../telemetry/log.ts'

interface HandOverOptions {
  readonly store: StateStore
  readonly sessions: { markReleased(): void }
  readonly activeCalls: ActiveCalls
  readonly graceMs: number
  readonly log: Log
}

interface DrainOptions {
  readonly activeCalls: ActiveCalls
  readonly tasks: { tasksSettled(timeoutMs: number): Promise<void> }
  readonly cluster: { retire(): void } | undefined
  readonly graceMs: number
}

const FIRST_SHARE = 0.75

/**
 * Lets calls and tasks end, and aborts calls that take longer than `graceMs`. A busy replica is never idle, because the others
 * send it more: once those that ran at first are over, what comes is kept for the others, and the last calls can end, too.
 */
export const drainForStop = async ({ activeCalls, tasks, cluster, graceMs }: DrainOptions): Promise<void> => {
  const end = Date.now() + graceMs
  const firstMs = graceMs * FIRST_SHARE
  await Promise.all([cluster && activeCalls.whenSettled(firstMs), tasks.tasksSettled(firstMs)])
  cluster?.retire()
  await activeCalls.drain(Math.max(0, end - Date.now()))
}

/** Lets other replicas take what this one held, and waits until they have answered the requests that were kept for them. */
export const handOver = async ({ store, sessions, activeCalls, graceMs, log }: HandOverOptions): Promise<void> => {
  await store.releaseAll().catch((error: unknown) => log.warn({ err: error }, 'state not released to others'))
  sessions.markReleased()
  await new Promise(setImmediate) // until the kept requests are sent
  await activeCalls.drain(graceMs)
}
