import { ConfigError } from '../config/problems.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { FileSharing, OpenState, StatePlace } from '../stores/state/open-state.ts'
import type { Log } from '../telemetry/log.ts'

/** How the state of a gateway is opened. */
export interface ServeStateOptions {
  readonly data: string // the data directory
  readonly isEphemeral: boolean // --ephemeral
  readonly sharing?: FileSharing | undefined // with other processes of this gateway; undefined: there are none
  readonly log: Log
}

const REFUSALS: readonly string[] = ['DataDirectoryInUse', 'UnusableStore']

/** Opens the state of a gateway: the store of its configuration, or a file in the data directory. Undefined: none is kept. */
export const openServeState = async (
  { store }: Snapshot,
  { data, isEphemeral, sharing, log }: ServeStateOptions,
): Promise<OpenState | undefined> => {
  if (isEphemeral) return undefined
  const place: StatePlace = store ? { kind: 'postgres', ...store } : { kind: 'sqlite', data, sharing }
  const { openState } = await import('../stores/state/open-state.ts')
  return openState(place, log).catch((error: Error) => {
    throw REFUSALS.includes(error.name) ? new ConfigError(error.message) : error
  })
}
