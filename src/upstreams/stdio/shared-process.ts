import type { Signal } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { areOneUser, Users } from '../../protocol/users.ts'
import { Json } from '../../wire/json/json.ts'
import { type Message, notificationPieces, requestPieces } from '../../wire/json-rpc.ts'
import {
  DISCONNECTED,
  errorOfThrown,
  type FailureDetails,
  forOtherCallers,
  toRpcError,
  withoutQuotes,
} from '../failures.ts'
import type { ProcessLimit, UsageLimits } from '../process/process-limits.ts'
import { missedBy } from '../session/missed.ts'
import type { Pooled } from '../session/pool.ts'
import { withEnvelope } from '../stateless/envelope.ts'
import { introduction } from './open-process.ts'
import type { Pipe } from './pipe.ts'
import { ProcessSupervisor, type SupervisedProcess } from './process-supervisor.ts'
import { type CallHome, StdioCall } from './stdio-call.ts'
import type { StdioLink } from './stdio-link.ts'

interface Options {
  readonly roster: ProcessLimit
  readonly bounds: UsageLimits
  /** Starts a process of a server that is modern; rejects with UpstreamFailure. */
  open(signal: Signal): Promise<Pipe>
}

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'
const COMPLETE = Json.of({ resultType: 'complete' })
const REVIVE_MS = 1000
const MOST_LOGGED = 500 // characters of a notification

/** A modern server over stdio: every request stands alone, so callers can share one process. */
export class StdioShared implements Pooled, CallHome, SupervisedProcess {
  readonly revision = MODERN
  readonly asks = false
  readonly correlates = true
  onClosed: () => void = () => {}
  readonly link: StdioLink
  lastUsed = Date.now()

  readonly #options: Options
  readonly #keeper: ProcessSupervisor
  readonly #calls: StdioCall[] = [] // in order of arrival
  readonly #acknowledged = new WeakSet<StdioCall>()
  readonly #users = new Users()
  #lastId = 0
  #isClosed = false

  constructor(link: StdioLink, options: Options) {
    this.link = link
    this.#options = options
    this.#keeper = new ProcessSupervisor(link, this, options.roster, options.bounds)
  }

  get isRunning(): boolean {
    return this.#keeper.pipe !== undefined
  }

  get isBusy(): boolean {
    return this.isWorking
  }

  get isWorking(): boolean {
    return this.#calls.length > 0
  }

  get pipes(): Pipe[] {
    return this.#keeper.pipes
  }

  answers(): Promise<boolean> {
    return this.#keeper.answers()
  }

  /** Settles when the server runs; rejects with UpstreamFailure, which callers that wait for the same start share. */
  async ensure(caller: Caller): Promise<void> {
    if (!caller.isHealthCheck) this.#users.add(caller)
    try {
      await this.#keeper.ensure()
    } catch (thrown) {
      throw this.#users.areSeveral ? forOtherCallers(thrown) : thrown
    }
  }

  /** Takes over a process that was found to be modern. */
  adopt(pipe: Pipe): void {
    this.#keeper.adopt(pipe)
  }

  readonly dispatch: Dispatch = exchange => {
    this.lastUsed = Date.now()
    if (!exchange.caller.isHealthCheck) this.#users.add(exchange.caller)
    if (exchange.kind === 'notification') return this.#notify(exchange)
    if (this.#isClosed)
      return void deliver(exchange.sink, { kind: 'failure', error: toRpcError(this.link.name, DISCONNECTED) })
    const call = new StdioCall(this, exchange, ++this.#lastId)
    this.#calls.push(call)
    call.start()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.onClosed()
    const closing = this.#keeper.close()
    for (const call of [...this.#calls])
      if (call.isListen) call.finish({ kind: 'result', result: COMPLETE })
      else call.lose(DISCONNECTED)
    await closing
  }

  prepare(params: Json, { caller }: Exchange): Json {
    return withEnvelope(params, caller)
  }

  doubt(pipe: Pipe): void {
    this.#keeper.doubt(pipe)
  }

  transmit(call: StdioCall): void {
    const { pipe } = this.#keeper
    if (call.isDone) return
    if (pipe) return call.send(pipe)
    this.#keeper.ensure().then(
      started => call.send(started),
      (thrown: unknown) => this.#refused(call, thrown),
    )
  }

  finished(call: StdioCall): void {
    const at = this.#calls.indexOf(call)
    if (at >= 0) this.#calls.splice(at, 1)
    this.lastUsed = Date.now()
    if (call.pipe && call.pipe !== this.#keeper.pipe) this.#endIfDone(call.pipe)
  }

  open(signal: Signal): Promise<Pipe> {
    return this.#options.open(signal)
  }

  ready(): void {}

  message(message: Message): void {
    switch (message.kind) {
      case 'request': // a modern server must not ask; one that does gets no answer
        return this.link.log.debug({ method: message.method }, 'ignored a request of a modern server')
      case 'notification':
        return this.#noticed(message.method, message.params)
      default:
        this.#callOf(message.id)?.answered(message)
    }
  }

  lost(pipe: Pipe, loss: FailureDetails): void {
    const told = this.#users.areSeveral ? withoutQuotes(loss) : loss
    for (const call of this.#calls.filter(call => call.pipe === pipe)) call.lost(told)
  }

  /** New requests go to a new process; the old one finishes what it has begun. */
  aged(): void {
    const { pipe } = this.#keeper
    if (!pipe) return
    this.link.log.info({ pid: pipe.child.pid }, 'replaces a process that has lived long enough')
    this.#keeper.retire()
    for (const call of this.#calls.filter(call => call.isListen && call.pipe === pipe)) call.move()
    this.#endIfDone(pipe)
  }

  ping(): readonly Buffer[] {
    return requestPieces(++this.#lastId, 'server/discover', introduction(this.link.identity))
  }

  #endIfDone(pipe: Pipe): void {
    const isNeeded = this.#calls.some(call => call.pipe === pipe)
    if (!isNeeded) void this.#keeper.end(pipe)
  }

  /** A listen outlasts an outage: it is sent as soon as there is a process again. */
  #refused(call: StdioCall, thrown: unknown): void {
    const told = this.#users.areSeveral ? forOtherCallers(thrown) : thrown
    if (!this.#acknowledged.has(call) || this.#isClosed) return call.fail(errorOfThrown(this.link.name, told))
    setTimeout(() => this.transmit(call), this.link.restarts.pausedMs || REVIVE_MS).unref()
  }

  #notify(exchange: Exchange): void {
    const { pipe } = this.#keeper
    if (this.#isClosed) return
    if (pipe) return this.#tell(pipe, exchange)
    this.#keeper.ensure().then(
      started => this.#tell(started, exchange),
      () => this.link.log.warn({ method: exchange.method }, 'dropped a notification: the server does not run'),
    )
  }

  #tell(pipe: Pipe, { method, params }: Exchange): void {
    if (pipe.child.pendingBytes <= this.link.pendingBytes) pipe.send(notificationPieces(method, params))
    else this.link.log.warn({ method }, 'dropped a notification: the server does not read what it is sent')
  }

  #noticed(method: string, params: Json): void {
    if (method === 'notifications/progress') return this.#callOf(params.get('progressToken'))?.progressed(params)
    if (method === 'notifications/cancelled') return this.#ended(this.#callOf(params.get('requestId')))
    const subscription = params.get('_meta')?.get(META.subscriptionId)
    if (subscription) return this.#told(this.#callOf(subscription), method, params)
    const call = method === 'notifications/message' ? this.#logged : undefined
    if (call) call.notice(method, params)
    else
      this.link.log.debug(
        { method, text: params.toString().slice(0, MOST_LOGGED) },
        'dropped a notification that names no call',
      )
  }

  /**
   * The call a log line goes to, although nothing says whose it is: the earliest that asked for logs, never two; a listen
   * where no call runs. Among calls of several users it could be another's, so none of them gets it.
   */
  get #logged(): StdioCall | undefined {
    const running = this.#calls.filter(({ isListen }) => !isListen)
    const calls = running.length > 0 ? running : this.#calls
    if (!areOneUser(calls.map(({ exchange }) => exchange.caller))) return undefined
    return calls.find(({ exchange }) => exchange.caller.logLevel !== undefined)
  }

  /** A server may end a listen, and nothing else. */
  #ended(call: StdioCall | undefined): void {
    if (call?.isListen) call.finish({ kind: 'result', result: COMPLETE })
  }

  #told(call: StdioCall | undefined, method: string, params: Json): void {
    if (!call || method !== ACKNOWLEDGED || !this.#acknowledged.has(call)) call?.notice(method, params)
    // By a new process: the listener knows, but what happened meanwhile he does not.
    else for (const missed of missedBy(params)) call.notice(missed.method, missed.params)
    if (call && method === ACKNOWLEDGED) this.#acknowledged.add(call)
  }

  #callOf(id: Json | undefined): StdioCall | undefined {
    const number = id?.asNumber()
    return this.#calls.find(call => call.id === number)
  }
}
