import type { ServerConfig } from '../config/snapshot.ts'
import { NoAnswer, type RpcError, RpcFailure, rpcError, summaryOf } from '../protocol/errors.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import type { ServerPing, ServerStatus } from '../protocol/status.ts'
import { SingleFlight } from '../std/single-flight.ts'
import { sleep, within } from '../std/time.ts'
import { Json } from '../wire/json/json.ts'
import { pingServer } from './ping-server.ts'
import { needsLogin, PER_CALLER, type ProbedServer, probeServer, type ReadLists } from './probe-server.ts'
import {
  downError,
  faultIn,
  type HealthEvent,
  type HealthState,
  isBreaking,
  isUp,
  nextProbeMs,
  type ServerFault,
  serverFaultOf,
  step,
} from './state.ts'

interface HealthCheckOptions {
  readonly config: ServerConfig
  readonly upstream: Upstream // below the guard
  readonly self: Caller
  readonly onChange: (state: HealthState) => void
  readonly readLists?: ReadLists | undefined // undefined: only its tools are read
  readonly onTool?: (name: string | undefined) => void // called for each tool that is read
}

const PROBE_MS = 10_000
const START_MS = 90_000 // a little more than the longest start of a process
const LISTS_MS = 5000
const RETRY_MS = 1000 // a call to a server that is down probes it at most this often, and waits this long for the outcome
const IDLE_MS = 30_000 // until the next check, where no liveness check was possible

export type HealthCheck = ReturnType<typeof createHealthCheck>

/** Keeps the health of one server: from the outcome of calls, from liveness checks, and from probes while it is down. */
export const createHealthCheck = (options: HealthCheckOptions) => {
  const { config, upstream, self, onChange, readLists, onTool } = options
  const server = config.name
  const isProcess = config.kind === 'process' // its start may take long, and is no failure while it lasts
  const isShared = !(isProcess && config.personal) // false: every caller has a process, started with the caller's credentials
  const isPerUser = isProcess && config.share !== 'everyone' // a user's process that exits says nothing about the others
  const isProbed = isProcess || config.kind === 'remote' || config.kind === 'openapi' // false for servers that run inside the gateway
  const probing = new SingleFlight()
  let state = firstState(config, Date.now())
  let openings = 0
  let retries = 0
  let revision: string | undefined
  let tools: readonly Json[] | undefined
  let counting: Promise<void> | undefined
  let hasAnswered = false // since the last check
  let handshakeFault: ServerFault | undefined // of the latest caller, while others may be served
  let timer: NodeJS.Timeout | undefined
  let probedAt = Number.NEGATIVE_INFINITY
  let isClosed = false

  const rejection = (): RpcError | undefined =>
    state.kind === 'down' && !isUp(state) ? downError(server, state, Date.now()) : undefined

  const apply = (event: HealthEvent): void => {
    if (isClosed) return
    const before = state
    state = step(before, event, { now: Date.now(), random: Math.random() })
    if (state === before) return
    if (state.kind === 'down' && before.kind !== 'down') openings++
    schedule()
    if (state.kind !== before.kind) onChange(state)
  }

  const schedule = (atLeastMs = 0): void => {
    clearTimeout(timer)
    if (isClosed || !isProbed) return
    const ms = nextProbeMs(state, Date.now(), Math.random())
    if (ms === undefined) return
    timer = setTimeout(() => void check(), Math.max(ms, atLeastMs)).unref()
  }

  const check = async (): Promise<void> => {
    if (state.kind === 'down') return probe()
    const hasTraffic = state.kind === 'ready' && hasAnswered
    hasAnswered = false
    if (hasTraffic) return schedule()
    const begun = Date.now()
    const before = state
    try {
      const isAlive = await answered(PROBE_MS, upstream.probe?.() ?? Promise.resolve(false))
      if (isAlive) apply({ kind: 'answered' })
    } catch (error) {
      const fault = faultOfThrown(error)
      apply(isOfServer(fault) ? { kind: 'failed', fault, begun } : { kind: 'probeRejected', fault })
    }
    if (state === before) schedule(before.kind === 'degraded' ? IDLE_MS : 0)
  }

  /** One probe at a time: callers that need one meanwhile share it. */
  const probe = (): Promise<void> => {
    if (!probing.running) probedAt = Date.now()
    return probing.run(connect)
  }

  const connect = async (): Promise<void> => {
    const connecting = probeServer(upstream, self, readLists).then(connected) // however late
    try {
      await answered(isProcess ? START_MS : PROBE_MS, connecting)
    } catch (error) {
      const fault = faultOfThrown(error)
      const untried = UNTRIED[fault.reason]
      if (untried) apply({ kind: 'notProbed', fault: { ...fault, message: untried(server) } })
      else apply({ kind: REJECTIONS.has(fault.reason) || !isShared ? 'probeRejected' : 'probeFailed', fault })
    }
  }

  /**
   * A slow or missing list does not make the server unhealthy. A server that connects for the first time is ready once its
   * lists are known, so that clients that wait for the gateway to be ready get them at once.
   */
  const connected = (probed: ProbedServer): void => {
    revision = probed.revision
    const listed = (found: readonly Json[] | undefined): void => {
      tools = found
      for (const tool of found ?? []) onTool?.(tool.get('name')?.asString())
      if (state.kind === 'connecting') apply({ kind: 'answered' })
    }
    counting = probed.readTools().then(listed, () => listed(undefined))
    if (state.kind === 'connecting') setTimeout(() => listed(tools), LISTS_MS).unref()
    else apply({ kind: 'answered' })
  }

  /** Whether the failure of one caller's call concerns every caller; that a program cannot start always does. */
  const isOfServer = (fault: ServerFault): boolean =>
    isBreaking(fault) && isShared && (!isPerUser || fault.reason === CANNOT_START)

  const answered = <T>(ms: number, work: Promise<T>): Promise<T> =>
    within<T, never>(ms, work, () => {
      const data = Json.of({ reason: 'upstream_timeout', upstream: server })
      const message = `Server "${server}" gave no answer within ${ms / 1000} s`
      throw new RpcFailure(new NoAnswer(rpcError('internal', message, data)))
    })

  return {
    isUp: (): boolean => isUp(state),
    /** The error of every call while the server is down. */
    get rejection() {
      return rejection()
    },
    status: (): ServerStatus => {
      const fault = state.kind === 'ready' ? handshakeFault : undefined
      return {
        name: server,
        state: fault ? 'degraded' : state.kind,
        since: state.since,
        reason: (fault ?? faultIn(state))?.message,
        retryAt: state.kind === 'down' ? state.retryAt : undefined,
        revision,
        tools: tools?.length,
      }
    },
    /** Its tools as it listed them to the gateway; undefined: they are not known. */
    tools: () => tools,
    /** How often the server went down, and how many requests and connections were retried. */
    counts: () => ({ openings, retries }),
    /** Probes a server that is still connecting; resolves when the probe has ended or takes too long. */
    firstProbe: async (): Promise<void> => {
      if (state.kind !== 'connecting') return
      const probed = probe().then(() => counting)
      await within(PROBE_MS, probed, () => undefined)
      const message = `Server "${server}" has not answered yet: ${PROBE_MS / 1000} s so far`
      apply({ kind: 'probeSlow', fault: { reason: 'upstream_timeout', message } })
    },
    /** Probes a server that is not ready, at once; resolves when the probe has ended or takes too long. */
    probeNow: async (): Promise<void> => {
      if (state.kind === 'ready' || state.kind === 'disabled' || state.kind === 'unavailable') return
      await within(PROBE_MS, probe(), () => undefined)
    },
    /** Reads its lists again in the background, if it is there. */
    readAgain: (): void => {
      if (state.kind === 'ready' || state.kind === 'degraded')
        probeServer(upstream, self, readLists).then(connected, () => {}) // the next probe finds out what is wrong
    },
    /** Measures its answer, however it is; rejects with RpcFailure. */
    ping: (): Promise<ServerPing> => answered(isProcess ? START_MS : PROBE_MS, pingServer(upstream, self)),
    /** Probes a server that is down. Resolves if calls may be sent after all; rejects with RpcFailure. */
    retryNow: async (): Promise<void> => {
      if (!probing.running && Date.now() - probedAt >= RETRY_MS) void probe()
      const ms = probedAt + RETRY_MS - Date.now()
      if (probing.running && ms > 0) await Promise.race([probing.running, sleep(ms)])
      const error = rejection()
      if (error) throw new RpcFailure(error)
    },
    recordAnswer: (): void => {
      hasAnswered = true
      if (state.kind !== 'ready') apply({ kind: 'answered' })
    },
    recordFailure: (error: RpcError, begun: number): void => {
      const fault = serverFaultOf(error)
      if (fault && isOfServer(fault)) apply({ kind: 'failed', fault, begun })
    },
    /** The server accepted a caller's handshake, or failed it with this error. */
    recordOpen: (error?: RpcError): void => {
      const fault = error && serverFaultOf(error)
      handshakeFault = fault?.reason === HANDSHAKE_FAILED ? fault : undefined
    },
    recordRetry: (): void => void retries++,
    close: (): void => {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

const firstState = (config: ServerConfig, since: number): HealthState => {
  if (config.disabled) return { kind: 'disabled', since }
  if (config.kind !== 'unavailable') return { kind: 'connecting', since }
  return { kind: 'unavailable', since, fault: { reason: 'unavailable', message: config.reason } }
}

const faultOfThrown = (error: unknown): ServerFault => {
  const fault = error instanceof RpcFailure ? serverFaultOf(error.error) : undefined
  return fault ?? { reason: SERVER_ERROR, message: summaryOf(error) }
}

const HANDSHAKE_FAILED = 'upstream_protocol' // the server answers, but not the handshake
const CANNOT_START = 'upstream_unreachable' // of a process
const SERVER_ERROR = 'declined' // an error the server sent

/** By reason: the server serves callers with their own credentials or login, and the gateway has none. */
const UNTRIED: Readonly<Record<string, ((server: string) => string) | undefined>> = {
  no_credentials: () => PER_CALLER,
  login_required: needsLogin,
}

/** The server is there, but rejects the gateway, now or always; other callers may be served. */
const REJECTIONS: ReadonlySet<string> = new Set([
  SERVER_ERROR,
  'upstream_auth',
  'upstream_refused',
  'upstream_busy',
  'login_impossible',
  'login_unavailable',
  'pool_exhausted',
])
