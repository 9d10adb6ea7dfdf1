import { type RpcError, RpcFailure, summaryOf } from '../protocol/errors.ts'
import type { Caller, Upstream } from '../protocol/exchange.ts'
import type { ServerStatus } from '../protocol/status.ts'
import { downError, isBreaking, type ServerFault, serverFaultOf } from './circuit-breaker.ts'
import { pause, within } from './deadline.ts'
import { PER_CALLER, type ProbedServer, probeServer } from './examine.ts'
import { nextProbeMs } from './probe-schedule.ts'
import type { HealthMonitor } from './server-guard.ts'
import { faultIn, type HealthEvent, type HealthState, isUp, step } from './state.ts'

interface Options {
  readonly server: string
  readonly first: HealthState
  readonly upstream: Upstream // not through the gate
  readonly self: Caller
  readonly isStarted: boolean // a process: its start may take long, and counts as no failure before it failed
  readonly isShared: boolean // false where every caller has a process of their own, started in their name
  readonly isPerUser: boolean // every user has a process: one that ends or hangs says nothing of the others
  readonly isLookedAfter: boolean // false for servers that live in this process
  readonly changed: (state: HealthState, before: HealthState) => void
  readonly listed?: (tool: string | undefined) => void // hears the name of each tool that is counted
}

const TRY_MS = 10_000
const START_MS = 90_000 // a little more than the longest start of a process
const EAGER_MS = 1000 // callers have a server that is down tried again this soon, and wait so long for the outcome
const IDLE_MS = 30_000 // nothing could be asked; until the next look

/** Keeps watch over one server: how it is by what passes the gate, by looking at it, and by trying it when it is down. */
export class HealthCheck implements HealthMonitor {
  openings = 0 // how often it went down
  retries = 0
  readonly #options: Options
  #state: HealthState
  #revision: string | undefined
  #tools: number | undefined
  #counting: Promise<void> | undefined
  #hasAnswered = false // since the last look
  #refusal: ServerFault | undefined // of the handshake of the latest caller, while others may be served
  #timer: NodeJS.Timeout | undefined
  #trying: Promise<void> | undefined
  #triedAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(options: Options) {
    this.#options = options
    this.#state = options.first
  }

  get isUp(): boolean {
    return isUp(this.#state)
  }

  get rejection(): RpcError | undefined {
    return this.#state.kind === 'down' ? downError(this.#options.server, this.#state, Date.now()) : undefined
  }

  status(): ServerStatus {
    const state = this.#state
    const refusal = state.kind === 'ready' ? this.#refusal : undefined
    return {
      name: this.#options.server,
      state: refusal ? 'degraded' : state.kind,
      since: state.since,
      reason: (refusal ?? faultIn(state))?.message,
      retryAt: state.kind === 'down' ? state.retryAt : undefined,
      revision: this.#revision,
      tools: this.#tools,
    }
  }

  /** The first try; settles when it is over, or lasts. */
  async firstProbe(): Promise<void> {
    if (this.#state.kind !== 'connecting') return
    const { server } = this.#options
    await Promise.race([this.#try().then(() => this.#counting), pause(TRY_MS)])
    this.#note({
      kind: 'late',
      fault: {
        reason: 'upstream_timeout',
        message: `Server "${server}" has not answered yet: ${TRY_MS / 1000} s so far`,
      },
    })
  }

  /** A caller wants it: it is tried now, if that was not done just before. */
  async retryNow(): Promise<void> {
    if (!this.#trying && Date.now() - this.#triedAt >= EAGER_MS) void this.#try()
    const ms = this.#triedAt + EAGER_MS - Date.now()
    if (this.#trying && ms > 0) await Promise.race([this.#trying, pause(ms)])
    const { rejection: refusal } = this
    if (refusal) throw new RpcFailure(refusal)
  }

  recordAnswer(): void {
    this.#hasAnswered = true
    if (this.#state.kind !== 'ready') this.#note({ kind: 'answered' })
  }

  recordFailure(error: RpcError, begun: number): void {
    const fault = serverFaultOf(error)
    if (fault && this.#counts(fault)) this.#note({ kind: 'failed', fault, begun })
  }

  recordOpen(error?: RpcError): void {
    const fault = error && serverFaultOf(error)
    this.#refusal = fault?.reason === REFUSED ? fault : undefined
  }

  recordRetry(): void {
    this.retries++
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #note(event: HealthEvent): void {
    if (this.#isClosed) return
    const before = this.#state
    this.#state = step(before, event, { now: Date.now(), random: Math.random() })
    if (this.#state === before) return
    if (this.#state.kind === 'down' && before.kind !== 'down') this.openings++
    this.#lookLater()
    if (this.#state.kind !== before.kind) this.#options.changed(this.#state, before)
  }

  #lookLater(atLeastMs = 0): void {
    clearTimeout(this.#timer)
    if (this.#isClosed || !this.#options.isLookedAfter) return
    const ms = nextProbeMs(this.#state, Date.now(), Math.random())
    if (ms === undefined) return
    this.#timer = setTimeout(() => void this.#look(), Math.max(ms, atLeastMs)).unref()
  }

  async #look(): Promise<void> {
    if (this.#state.kind === 'down') return this.#try()
    const isKnown = this.#state.kind === 'ready' && this.#hasAnswered // traffic is health enough
    this.#hasAnswered = false
    if (isKnown) return this.#lookLater()
    const begun = Date.now()
    const before = this.#state
    const { upstream, server } = this.#options
    try {
      const isAsked = await within(TRY_MS, upstream.probe?.() ?? Promise.resolve(false), server)
      if (isAsked) this.#note({ kind: 'answered' })
    } catch (error) {
      const fault = this.#faultOf(error)
      this.#note(this.#counts(fault) ? { kind: 'failed', fault, begun } : { kind: 'refused', fault })
    }
    if (this.#state === before) this.#lookLater(before.kind === 'degraded' ? IDLE_MS : 0)
  }

  /** Meets the server as a client would; whoever wants that meanwhile shares the try. */
  #try(): Promise<void> {
    if (this.#trying) return this.#trying
    this.#triedAt = Date.now()
    const over = (): void => {
      this.#trying = undefined
    }
    this.#trying = this.#meet().finally(over)
    return this.#trying
  }

  async #meet(): Promise<void> {
    const { upstream, self, isStarted, isShared, server } = this.#options
    const meeting = probeServer(upstream, self).then(acquaintance => this.#met(acquaintance)) // however late
    try {
      await within(isStarted ? START_MS : TRY_MS, meeting, server)
    } catch (error) {
      const fault = this.#faultOf(error)
      if (fault.reason === NOBODY_THERE) this.#note({ kind: 'unasked', fault: { ...fault, message: PER_CALLER } })
      else this.#note({ kind: DECLINES.has(fault.reason) || !isShared ? 'refused' : 'missed', fault })
    }
  }

  /** A list that comes late, or not at all, is another matter than whether the server is there. */
  #met({ revision, countTools }: ProbedServer): void {
    this.#revision = revision
    this.#note({ kind: 'answered' })
    const counted = (tools: number | undefined): void => {
      this.#tools = tools
    }
    this.#counting = countTools(this.#options.listed).then(counted, () => counted(undefined))
  }

  /** Whether the failure of one caller says something of the server; that a program cannot start always does. */
  #counts(fault: ServerFault): boolean {
    const { isShared, isPerUser } = this.#options
    return isBreaking(fault) && isShared && (!isPerUser || fault.reason === CANNOT_START)
  }

  #faultOf(error: unknown): ServerFault {
    const fault = error instanceof RpcFailure ? serverFaultOf(error.error) : undefined
    return fault ?? { reason: DECLINED, message: summaryOf(error) }
  }
}

const REFUSED = 'upstream_protocol' // it answers, but not the handshake
const CANNOT_START = 'upstream_unreachable' // of a process
const DECLINED = 'declined' // an error of the server's own
const NOBODY_THERE = 'no_credentials' // it is called in the name of callers, and we are none

/** It is there, but not for us, or not now; others may fare better. */
const DECLINES: ReadonlySet<string> = new Set([
  DECLINED,
  'upstream_auth',
  'upstream_refused',
  'upstream_busy',
  'pool_exhausted',
])
