import type { ServerConfig } from '../config/snapshot.ts'
import { NoAnswer, type RpcError, RpcFailure, rpcError, summaryOf } from '../protocol/errors.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import type { ServerStatus } from '../protocol/status.ts'
import { SingleFlight } from '../std/single-flight.ts'
import { sleep, within } from '../std/time.ts'
import { Json } from '../wire/json/json.ts'
import { PER_CALLER, type ProbedServer, probeServer, type ReadLists } from './probe-server.ts'
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
  readonly readLists?: ReadLists | undefined // undefined: only its tools are counted
  readonly onTool?: (name: string | undefined) => void // called for each tool that is counted
}

const PROBE_MS = 10_000
const START_MS = 90_000 // a little more than the longest start of a process
const LISTS_MS = 5000
const RETRY_MS = 1000 // a call to a server that is down probes it at most this often, and waits this long for the outcome
const IDLE_MS = 30_000 // until the next check, where no liveness check was possible

/** Keeps the health of one server: from the outcome of calls, from liveness checks, and from probes while it is down. */
export class HealthCheck {
  readonly #options: HealthCheckOptions
  readonly #server: string
  readonly #isProcess: boolean // its start may take long, and is no failure while it lasts
  readonly #isShared: boolean // false: every caller has a process, started with the caller's credentials
  readonly #isPerUser: boolean // every user has a process: one that exits or hangs says nothing about the others
  readonly #isProbed: boolean // false for servers that run inside the gateway
  #openings = 0
  #retries = 0
  #state: HealthState
  #revision: string | undefined
  #tools: number | undefined
  #counting: Promise<void> | undefined
  #hasAnswered = false // since the last check
  #handshakeFault: ServerFault | undefined // of the latest caller, while others may be served
  #timer: NodeJS.Timeout | undefined
  readonly #probing = new SingleFlight()
  #probedAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(options: HealthCheckOptions) {
    const { config } = options
    const isProcess = config.kind === 'process'
    this.#options = options
    this.#server = config.name
    this.#isProcess = isProcess
    this.#isShared = !(isProcess && config.personal)
    this.#isPerUser = isProcess && config.share !== 'everyone'
    this.#isProbed = isProcess || config.kind === 'remote'
    this.#state = firstState(config, Date.now())
  }

  get state(): HealthState['kind'] {
    return this.#state.kind
  }

  get isUp(): boolean {
    return isUp(this.#state)
  }

  /** The error of every call while the server is down. */
  get rejection(): RpcError | undefined {
    return this.#state.kind === 'down' ? downError(this.#server, this.#state, Date.now()) : undefined
  }

  /** How often the server went down, and how many requests and connections were retried. */
  get counts(): { readonly openings: number; readonly retries: number } {
    return { openings: this.#openings, retries: this.#retries }
  }

  status(): ServerStatus {
    const state = this.#state
    const fault = state.kind === 'ready' ? this.#handshakeFault : undefined
    return {
      name: this.#server,
      state: fault ? 'degraded' : state.kind,
      since: state.since,
      reason: (fault ?? faultIn(state))?.message,
      retryAt: state.kind === 'down' ? state.retryAt : undefined,
      revision: this.#revision,
      tools: this.#tools,
    }
  }

  /** Probes a server that is still connecting; resolves when the probe has ended or takes too long. */
  async firstProbe(): Promise<void> {
    if (this.#state.kind !== 'connecting') return
    const probed = this.#probe().then(() => this.#counting)
    await within(PROBE_MS, probed, () => undefined)
    const message = `Server "${this.#server}" has not answered yet: ${PROBE_MS / 1000} s so far`
    this.#apply({ kind: 'probeSlow', fault: { reason: 'upstream_timeout', message } })
  }

  /** Probes a server that is down. Resolves if calls may be sent after all; rejects with RpcFailure. */
  async retryNow(): Promise<void> {
    if (!this.#probing.running && Date.now() - this.#probedAt >= RETRY_MS) void this.#probe()
    const ms = this.#probedAt + RETRY_MS - Date.now()
    if (this.#probing.running && ms > 0) await Promise.race([this.#probing.running, sleep(ms)])
    const { rejection } = this
    if (rejection) throw new RpcFailure(rejection)
  }

  recordAnswer(): void {
    this.#hasAnswered = true
    if (this.#state.kind !== 'ready') this.#apply({ kind: 'answered' })
  }

  recordFailure(error: RpcError, begun: number): void {
    const fault = serverFaultOf(error)
    if (fault && this.#isOfServer(fault)) this.#apply({ kind: 'failed', fault, begun })
  }

  /** The server accepted a caller's handshake, or failed it with this error. */
  recordOpen(error?: RpcError): void {
    const fault = error && serverFaultOf(error)
    this.#handshakeFault = fault?.reason === HANDSHAKE_FAILED ? fault : undefined
  }

  recordRetry(): void {
    this.#retries++
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #apply(event: HealthEvent): void {
    if (this.#isClosed) return
    const before = this.#state
    this.#state = step(before, event, { now: Date.now(), random: Math.random() })
    if (this.#state === before) return
    if (this.#state.kind === 'down' && before.kind !== 'down') this.#openings++
    this.#schedule()
    if (this.#state.kind !== before.kind) this.#options.onChange(this.#state)
  }

  #schedule(atLeastMs = 0): void {
    clearTimeout(this.#timer)
    if (this.#isClosed || !this.#isProbed) return
    const ms = nextProbeMs(this.#state, Date.now(), Math.random())
    if (ms === undefined) return
    this.#timer = setTimeout(() => void this.#check(), Math.max(ms, atLeastMs)).unref()
  }

  async #check(): Promise<void> {
    if (this.#state.kind === 'down') return this.#probe()
    const hasTraffic = this.#state.kind === 'ready' && this.#hasAnswered
    this.#hasAnswered = false
    if (hasTraffic) return this.#schedule()
    const begun = Date.now()
    const before = this.#state
    try {
      const isAlive = await this.#within(PROBE_MS, this.#options.upstream.probe?.() ?? Promise.resolve(false))
      if (isAlive) this.#apply({ kind: 'answered' })
    } catch (error) {
      const fault = faultOfThrown(error)
      this.#apply(this.#isOfServer(fault) ? { kind: 'failed', fault, begun } : { kind: 'probeRejected', fault })
    }
    if (this.#state === before) this.#schedule(before.kind === 'degraded' ? IDLE_MS : 0)
  }

  /** One probe at a time: callers that need one meanwhile share it. */
  #probe(): Promise<void> {
    if (!this.#probing.running) this.#probedAt = Date.now()
    return this.#probing.run(() => this.#connect())
  }

  async #connect(): Promise<void> {
    const { upstream, self, readLists } = this.#options
    const connecting = probeServer(upstream, self, readLists).then(probed => this.#connected(probed)) // however late
    try {
      await this.#within(this.#isProcess ? START_MS : PROBE_MS, connecting)
    } catch (error) {
      const fault = faultOfThrown(error)
      if (fault.reason === NO_CREDENTIALS) this.#apply({ kind: 'notProbed', fault: { ...fault, message: PER_CALLER } })
      else
        this.#apply({ kind: REJECTIONS.has(fault.reason) || !this.#isShared ? 'probeRejected' : 'probeFailed', fault })
    }
  }

  /**
   * A slow or missing list does not make the server unhealthy. A server that connects for the first time is ready once its
   * lists are known, so that clients that wait for the gateway to be ready get them at once.
   */
  async #connected({ revision, countTools }: ProbedServer): Promise<void> {
    this.#revision = revision
    const setTools = (tools: number | undefined): void => {
      this.#tools = tools
    }
    this.#counting = countTools(this.#options.onTool).then(setTools, () => setTools(undefined))
    if (this.#state.kind === 'connecting') await within(LISTS_MS, this.#counting, () => undefined)
    this.#apply({ kind: 'answered' })
  }

  /** Whether the failure of one caller's call concerns every caller; that a program cannot start always does. */
  #isOfServer(fault: ServerFault): boolean {
    return isBreaking(fault) && this.#isShared && (!this.#isPerUser || fault.reason === CANNOT_START)
  }

  #within<T>(ms: number, work: Promise<T>): Promise<T> {
    return within<T, never>(ms, work, () => {
      const data = Json.of({ reason: 'upstream_timeout', upstream: this.#server })
      const message = `Server "${this.#server}" gave no answer within ${ms / 1000} s`
      throw new RpcFailure(new NoAnswer(rpcError('internal', message, data)))
    })
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
const NO_CREDENTIALS = 'no_credentials' // the server is called with the caller's credentials, and the gateway has none

/** The server is there, but rejects the gateway, now or always; other callers may be served. */
const REJECTIONS: ReadonlySet<string> = new Set([
  SERVER_ERROR,
  'upstream_auth',
  'upstream_refused',
  'upstream_busy',
  'pool_exhausted',
])
