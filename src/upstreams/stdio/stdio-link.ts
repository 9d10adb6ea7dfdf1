import { createHash } from 'node:crypto'
import { DEFAULT_PROCESS_LIMITS, type ProcessServer } from '../../config/snapshot.ts'
import type { Log } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import { Deadlines } from '../deadlines.ts'
import type { FailureDetails } from '../failures.ts'
import type { Child, ProcessExit } from '../process/child.ts'
import type { ProcessHost } from '../process/process-host.ts'
import { RestartBackoff } from '../process/restart-backoff.ts'
import { failureOfExit, startChild } from '../process/start-child.ts'
import { createStderrLog, lastLines, maskSecrets } from '../process/stderr.ts'
import { CapabilityOffer } from '../session/capability-offer.ts'
import { Pipe } from './pipe.ts'

/** Logs the first line of a server on stdout that is no message. */
export type LogInvalidLine = (show: () => string) => void

/** What may be tuned; tests shorten the times. */
export interface StdioOptions {
  readonly log: Log
  readonly identity?: { readonly name: string; readonly version: string } // the gateway's, where the client is not known
  readonly host: ProcessHost // shared by all servers
  readonly logInvalidLine?: LogInvalidLine // shared by all processes of a server
  readonly probeMs?: number // for an answer to `server/discover`
  readonly pingMs?: number // for a process that was silent in a call
  readonly startMs?: number // for an answer to `initialize`; the first start may have to fetch the program
  readonly maxBytes?: number // one line from the server
  readonly pendingBytes?: number // written and not yet read by the server
  readonly backoffMs?: number
  readonly breakAfter?: number
  readonly breakMs?: number
  readonly steadyMs?: number
  readonly offersCallerRevision?: boolean | undefined // `initialize` offers the caller's revision instead of the newest legacy one
}

/** What all conversations with the processes of one server share. */
export interface StdioLink {
  readonly name: string
  readonly log: Log
  readonly identity: Json
  readonly deadlines: Deadlines
  readonly timeoutMs: number // silence of a call
  readonly probeMs: number
  readonly pingMs: number
  readonly startMs: number
  readonly pendingBytes: number
  readonly host: ProcessHost
  readonly restarts: RestartBackoff
  readonly offers: CapabilityOffer
  readonly offersCallerRevision: boolean
  readonly fingerprint: string // equal for servers that are started the same way
  /** Starts a process; rejects with UpstreamFailure. */
  start(): Promise<Pipe>
  /** Resolves when nothing of any process is left. */
  endAll(): Promise<void>
  /** Why a process that ended gives no answer. */
  failureOf(child: Child, exit: ProcessExit, reason: 'upstream_lost' | 'upstream_unreachable'): FailureDetails
  /** The last lines of stderr, without secrets. */
  lastLinesOf(child: Child): string
}

const MIB = 1024 * 1024
const SHORTEST_SECRET = 8
const MOST_SHOWN = 200 // characters

/** Logs once for a server: its processes come and go, and all print the same. */
export const createInvalidLineLog = (log: Log): LogInvalidLine => {
  let isLogged = false
  return show => {
    if (isLogged) return
    isLogged = true
    const text = show().slice(0, MOST_SHOWN)
    log.warn({ text }, 'the server writes text to stdout that is no message; such lines are ignored')
  }
}

/** Prepares what every process of that server needs; none is started yet. */
export const createStdioLink = (
  server: ProcessServer & { readonly name: string },
  options: StdioOptions,
): StdioLink => {
  const { log, host, probeMs = 3000, pingMs = 30_000, startMs = 60_000 } = options
  const { maxBytes = 64 * MIB, pendingBytes = 64 * MIB } = options
  const { backoffMs = 250, breakAfter = 5, breakMs = 30_000, steadyMs = 10_000 } = options
  const { logInvalidLine = createInvalidLineLog(log) } = options
  const { name = 'dragoman', version = '0.0.0' } = options.identity ?? {}
  const { exitMs, termMs } = server.limits ?? DEFAULT_PROCESS_LIMITS
  const secrets = Object.values(server.env).filter(value => value.length >= SHORTEST_SECRET)
  const tail = (child: Child): string => lastLines(child.stderr.text(), secrets)

  const show = (text: string): string => maskSecrets(text, secrets)
  const onInvalidLine = (line: Buffer): void => logInvalidLine(() => show(line.toString('utf8')))
  const tapStderr = createStderrLog(log, show)
  const children = new Set<Child>()

  const start = async (): Promise<Pipe> => {
    const bounds = { host, maxBytes, exitMs, termMs, onStderr: tapStderr?.() }
    const pipe = await Pipe.open(log, onInvalidLine, reader => startChild(server, bounds, reader))
    children.add(pipe.child)
    void pipe.child.treeEnded.then(() => children.delete(pipe.child))
    return pipe
  }

  const failureOf: StdioLink['failureOf'] = (child, exit, reason) => {
    if (!exit.isLineTooLong) return failureOfExit(exit, tail(child), reason)
    return { reason: 'too_large', text: `wrote a line of more than ${maxBytes} bytes`, stderr: tail(child) }
  }

  return {
    name: server.name,
    log,
    identity: Json.of({ name, version }),
    deadlines: new Deadlines(Math.max(10, Math.min(1000, (server.timeoutMs || 1000) / 4))),
    timeoutMs: server.timeoutMs,
    probeMs,
    pingMs,
    startMs,
    pendingBytes,
    host,
    restarts: new RestartBackoff(server.name, { backoffMs, breakAfter, breakMs, steadyMs }),
    offers: new CapabilityOffer(server.name, log),
    offersCallerRevision: options.offersCallerRevision ?? false,
    fingerprint: fingerprintOf(server),
    start,
    endAll: async () => void (await Promise.all([...children].map(child => child.stop()))),
    failureOf,
    lastLinesOf: tail,
  }
}

const fingerprintOf = ({ command, args, env, cwd }: ProcessServer): string => {
  const variables = Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1))
  return createHash('sha256')
    .update(JSON.stringify([command, args, cwd, variables]))
    .digest('base64url')
}
