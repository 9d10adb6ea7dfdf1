import type { Log } from '../../telemetry/log.ts'
import type { RecordKind, StateStore } from './state-store.ts'

const SWEEP_MS = 10 * 60_000
const AT_ONCE = 100

/** Deletes expired records of these kinds from time to time; one replica deletes each. Returns a function that stops it. */
export const sweepRecords = (
  store: Pick<StateStore, 'takeAbandoned' | 'remove'>,
  kinds: readonly RecordKind[],
  log: Log,
): (() => void) => {
  const sweep = async (): Promise<void> => {
    for (const kind of kinds)
      for (let isFull = true; isFull; ) {
        const expired = await store.takeAbandoned(kind, 'expired', AT_ONCE)
        for (const held of expired) await store.remove(held)
        isFull = expired.length === AT_ONCE
      }
  }
  const timer = setInterval(
    () => void sweep().catch((error: unknown) => log.debug({ err: error }, 'expired records not swept')),
    SWEEP_MS,
  ).unref()
  return () => clearInterval(timer)
}
