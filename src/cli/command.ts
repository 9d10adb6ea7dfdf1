import type { Snapshot } from '../config/snapshot.ts'
import type { WorkspaceStatus } from '../protocol/status.ts'
import type { Log } from '../telemetry/log.ts'

/** A gateway that listens. */
interface Running {
  readonly origin: string
  readonly ready: Promise<void> // every server has been tried once
  status(): readonly WorkspaceStatus[]
  close(): Promise<void>
}

/** Builds and starts the gateway; it is handed in because only the composition root knows the building. */
export type StartGateway = (snapshot: Snapshot, options: { log: Log; version: string }) => Promise<Running>

/** What a command gets from the process around it. */
export interface Context {
  readonly version: string
  readonly startGateway: StartGateway
}

/** Runs a command with the arguments after its name and returns the exit code. */
export type Run = (args: readonly string[], context: Context) => Promise<number>
