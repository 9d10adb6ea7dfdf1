import type { Readable, Writable } from 'node:stream'
import type { Daemon } from '../config/daemon-file.ts'
import type { Difference } from '../config/difference.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { Inspection, ServerReport } from '../protocol/inspection.ts'
import type { WorkspaceStatus } from '../protocol/status.ts'
import type { Log } from '../telemetry/log.ts'
import type { OpenMemory } from './memory/memory-admin.ts'

/** A gateway that listens. */
interface Running {
  readonly origin: string
  readonly localSecret: string // good for every workspace while it runs
  readonly ready: Promise<void> // every server has been tried once
  status(): readonly WorkspaceStatus[]
  /** How long nobody has been there. */
  idleMs(): number
  /** Goes over to another configuration. */
  swap(next: Snapshot): Difference
  close(): Promise<void>
}

/** Builds and starts the gateway; it is handed in because only the composition root knows the building. */
export type StartGateway = (
  snapshot: Snapshot,
  options: {
    log: Log
    version: string
    data: string
    insecure: boolean
    loadNext?: ((file: string | undefined) => Promise<Snapshot>) | undefined
  },
) => Promise<Running>

/** Serves a workspace of the daemon on a pipe until its client is gone. */
export type ServePipe = (options: {
  daemon: Daemon
  findAgain: () => Promise<Daemon | undefined>
  workspace: string
  input: Readable
  output: Writable
  log: Log
  version: string
}) => Promise<void>

/** Meets every server of a configuration once. */
export type Inspect = (
  snapshot: Snapshot,
  options: { log: Log; version: string; data: string; met?: (report: ServerReport) => void },
) => Promise<Inspection>

/** What needs the whole building. */
export interface Building {
  readonly startGateway: StartGateway
  readonly servePipe: ServePipe
  readonly inspect: Inspect
  readonly openMemory: OpenMemory
}

/** What a command gets from the process around it. */
export interface Context extends Building {
  readonly version: string
}

/** Runs a command with the arguments after its name and returns the exit code. */
export type Run = (args: readonly string[], context: Context) => Promise<number>
