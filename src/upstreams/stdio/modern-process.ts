import { areSameUser } from '../../protocol/callers.ts'
import type { Signal } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import { META } from '../../protocol/meta.ts'
import { isCall } from '../../protocol/methods.ts'
import { missedNotices, NOTIFICATIONS } from '../../protocol/notifications.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeNotification, encodeRequest, type Message } from '../../wire/json-rpc.ts'
import { DISCONNECTED, errorOfFailure, errorOfThrown, type FailureDetails } from '../failures.ts'
import { discoverParams } from '../probe.ts'
import { recordNotification } from '../record-messages.ts'
import { type CallOwner, type CallTransport, UpstreamCall } from '../session/call.ts'
import type { Pooled } from '../session/pool.ts'
import { acknowledgement } from '../session/session-listeners.ts'
import { withEnvelope } from '../stateless/envelope.ts'
import type { Pipe } from './pipe.ts'
import { ProcessSupervisor, type SupervisorHandler, type SupervisorOptions } from './process-supervisor.ts'
import type { StdioLink } from './stdio-link.ts'

type NotificationMessage = Extract<Message, { kind: 'notification' }>

interface ModernProcessOptions extends SupervisorOptions {
  /** Starts a process of a server that is modern; rejects with UpstreamFailure. */
  start(signal: Signal): Promise<Pipe>
  readonly onClosed: () => void
  /** Of the server, as another of its processes told: given, this one is not started before it is needed. */
  readonly capabilities?: Json | undefined
}

const COMPLETE: Frame = { kind: 'result', result: Json.of({ resultType: 'complete' }) }
const RETRY_MS = 1000
const MOST_LOGGED = 500 // characters of a notification

/** A modern server over stdio: every request stands alone, so the callers of one owner share a process. */
export class ModernProcess implements Pooled, CallTransport<Pipe>, CallOwner<Pipe>, SupervisorHandler {
  readonly revision = MODERN
  readonly asks = false
  readonly correlates = true
  readonly isShared = true
  readonly dialect = 'stdio'
  readonly link: StdioLink
  readonly #options: ModernProcessOptions
  readonly #supervisor: ProcessSupervisor
  readonly #calls: UpstreamCall<Pipe>[] = [] // in order of arrival
  readonly #acknowledged = new WeakSet<UpstreamCall<Pipe>>() // listens
  readonly #dormant = new Set<UpstreamCall<Pipe>>() // listens that are sent as soon as a process runs
  #capabilities: Json | undefined // of the server, as it last told
  #isIdle: boolean // no process runs because none was used, or needed yet
  #lastId = 0
  #lastUsed = Date.now()
  #hasCalled = false
  #isClosed = false

  constructor(link: StdioLink, options: ModernProcessOptions) {
    this.link = link
    this.#options = options
    this.#capabilities = options.capabilities
    this.#isIdle = options.capabilities !== undefined
    this.#supervisor = new ProcessSupervisor(link, this, options)
  }

  get capabilities(): Json | undefined {
    return this.#capabilities
  }

  /** Whether it serves callers without a process: a listen waits, and the first call starts one. */
  get isDormant(): boolean {
    return this.#isIdle && this.#capabilities !== undefined && !this.#isClosed
  }

  get isRunning(): boolean {
    return this.#supervisor.pipe !== undefined
  }

  get hasServedUsers(): boolean {
    return this.#supervisor.hasServedUsers
  }

  /** A listen keeps the process only for updates of resources: a process that does not run changes no list. */
  get isBusy(): boolean {
    return this.#calls.some(call => !call.isListen || needsProcess(call))
  }

  get hasCalled(): boolean {
    return this.#hasCalled
  }

  get lastUsed(): number {
    return this.#lastUsed
  }

  get pipes(): Pipe[] {
    return this.#supervisor.pipes
  }

  touch(): void {
    this.#lastUsed = Date.now()
  }

  answersPing(): Promise<boolean> {
    return this.#supervisor.answersPing()
  }

  /** Resolves when the process runs; rejects with UpstreamFailure, the same for all callers that wait for one start. */
  async ensure(caller: Caller): Promise<void> {
    if (!caller.isHealthCheck) this.#supervisor.addUser(caller)
    await this.#supervisor.ensure()
  }

  /** Takes over a process that was detected to be modern. */
  adopt(pipe: Pipe): void {
    this.#supervisor.adopt(pipe)
  }

  readonly dispatch: Dispatch = exchange => {
    this.touch()
    if (!exchange.caller.isHealthCheck) this.#supervisor.addUser(exchange.caller)
    const { kind, method } = exchange
    if (kind === 'notification') {
      if (!this.#isClosed) this.#notify(exchange)
      return
    }
    if (this.#isClosed)
      return void deliver(exchange.sink, { kind: 'failure', error: errorOfFailure(this.link.name, DISCONNECTED) })
    this.#hasCalled ||= isCall(method)
    const call = new UpstreamCall<Pipe>(this, this, exchange, ++this.#lastId)
    this.#calls.push(call)
    call.start()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#options.onClosed()
    const closing = this.#supervisor.close()
    for (const call of [...this.#calls])
      if (call.isListen) call.end(COMPLETE)
      else call.failOrRetry(DISCONNECTED)
    await closing
  }

  send(call: UpstreamCall<Pipe>): undefined {
    const { pipe } = this.#supervisor
    if (pipe) return void this.#write(call, pipe)
    if (call.isListen && this.#waitForProcess(call)) return
    this.#supervisor.ensure().then(
      started => this.#write(call, started),
      (thrown: unknown) => this.#notStarted(call, thrown),
    )
  }

  cancel(call: UpstreamCall<Pipe>, reason: string): void {
    const { id, target } = call
    if (!target) return
    const pieces = encodeNotification(NOTIFICATIONS.cancelled, Json.of({ requestId: id, reason }))
    call.recordCancellation(pieces)
    this.#supervisor.post(pieces, 'cancellation', target)
  }

  timedOut({ target }: UpstreamCall<Pipe>): void {
    if (target) this.#supervisor.suspect(target)
  }

  finished(call: UpstreamCall<Pipe>, frame: Frame | undefined): void {
    if (frame?.kind === 'result' && call.exchange.method === 'server/discover')
      this.#capabilities = frame.result.get('capabilities')?.compact()
    const at = this.#calls.indexOf(call)
    if (at >= 0) this.#calls.splice(at, 1)
    this.#dormant.delete(call)
    this.touch()
    if (call.target && call.target !== this.#supervisor.pipe) this.#endIfUnused(call.target)
  }

  startProcess(signal: Signal): Promise<Pipe> {
    return this.#options.start(signal)
  }

  ready(): void {
    this.#isIdle = false
    const dormant = [...this.#dormant]
    this.#dormant.clear()
    for (const call of dormant) call.post()
  }

  idleEnded(): void {
    this.#isIdle = true
    for (const call of [...this.#calls]) call.post() // all are listens
  }

  message(message: Message): void {
    switch (message.kind) {
      case 'request': // a modern server must not ask; a request from it gets no answer
        return this.link.log.debug({ method: message.method }, 'ignored a request of a modern server')
      case 'notification':
        return this.#notified(message)
      default:
        void this.#callOf(message.id)?.message(message)
    }
  }

  lost(pipe: Pipe, failure: FailureDetails): void {
    for (const call of this.#calls.filter(({ target }) => target === pipe)) call.processEnded(failure)
  }

  /** New requests go to a new process; the old one finishes its calls. */
  aged(): void {
    const { pipe } = this.#supervisor
    if (!pipe) return
    this.link.log.info({ pid: pipe.child.pid }, 'process replaced after its maximum lifetime')
    this.#supervisor.retire()
    for (const call of this.#calls.filter(({ isListen, target }) => isListen && target === pipe)) call.post()
    this.#endIfUnused(pipe)
  }

  ping(): readonly Buffer[] {
    return encodeRequest(++this.#lastId, 'server/discover', discoverParams(this.link.identity))
  }

  #write(call: UpstreamCall<Pipe>, pipe: Pipe): void {
    this.#supervisor.write(call, pipe, withEnvelope(call.params, call.exchange.caller))
  }

  /** Whether the listen can wait until a call starts a process; the server has said before what it announces. */
  #waitForProcess(call: UpstreamCall<Pipe>): boolean {
    if (!this.#isIdle || needsProcess(call)) return false
    if (!this.#acknowledged.has(call)) {
      if (!this.#capabilities) return false
      this.#acknowledged.add(call)
      void call.notify(NOTIFICATIONS.acknowledged, acknowledgement(call.exchange.params, this.#capabilities))
    }
    this.#dormant.add(call)
    if (subscribedIn(call).length > 0) this.#awaitClient(call)
    return true
  }

  /** The client is gone, but has not ended its subscription: when it is back, it gets its updates again. */
  #awaitClient(call: UpstreamCall<Pipe>): void {
    const look = (): void => {
      if (!this.#dormant.has(call)) return
      if (!needsProcess(call)) return this.#awaitClient(call)
      this.#dormant.delete(call)
      call.post()
    }
    setTimeout(look, RETRY_MS).unref()
  }

  #endIfUnused(pipe: Pipe): void {
    if (!this.#calls.some(({ target }) => target === pipe)) void this.#supervisor.end(pipe)
  }

  /** A listen outlasts an outage: it is sent as soon as a process runs again. */
  #notStarted(call: UpstreamCall<Pipe>, thrown: unknown): void {
    if (!this.#acknowledged.has(call) || this.#isClosed) return call.fail(errorOfThrown(this.link.name, thrown))
    setTimeout(() => call.post(), this.link.restarts.pausedMs || RETRY_MS).unref()
  }

  #notify(exchange: Exchange): void {
    const { method, params } = exchange
    const pieces = encodeNotification(method, params)
    recordNotification(exchange, this, pieces)
    this.#supervisor.notify(pieces, method)
  }

  #notified(message: NotificationMessage): void {
    const { method, params } = message
    if (method === NOTIFICATIONS.progress) return void this.#callOf(params.get('progressToken'))?.message(message)
    if (method === NOTIFICATIONS.cancelled) return this.#listenEnded(this.#callOf(params.get('requestId')))
    const subscription = params.get('_meta')?.get(META.subscriptionId)
    if (subscription) return this.#listenNotified(this.#callOf(subscription), message)
    const call = method === NOTIFICATIONS.message ? this.#findLogged() : undefined
    if (call) return void call.message(message)
    const text = params.toString().slice(0, MOST_LOGGED)
    this.link.log.debug({ method, text }, 'dropped a notification that names no call')
  }

  /**
   * The call that gets a log line, which names no call: the earliest that wants logs, or a listen where no call runs.
   * If calls of several users run, none gets it: the line may be about another user.
   */
  #findLogged(): UpstreamCall<Pipe> | undefined {
    const running = this.#calls.filter(({ isListen }) => !isListen)
    const calls = running.length > 0 ? running : this.#calls
    if (!areSameUser(calls.map(({ exchange }) => exchange.caller))) return undefined
    return calls.find(({ exchange }) => exchange.caller.logLevel !== undefined)
  }

  /** A server may cancel a listen, and no other request. */
  #listenEnded(call: UpstreamCall<Pipe> | undefined): void {
    if (call?.isListen) call.end(COMPLETE)
  }

  #listenNotified(call: UpstreamCall<Pipe> | undefined, message: NotificationMessage): void {
    const { method, params } = message
    if (!call) return
    const isAcknowledgement = method === NOTIFICATIONS.acknowledged
    if (!isAcknowledgement || !this.#acknowledged.has(call)) void call.message(message)
    // A new process acknowledged it: the listener has missed what happened meanwhile.
    else for (const missed of missedNotices(params)) void call.notify(missed.method, missed.params)
    if (isAcknowledgement) this.#acknowledged.add(call)
  }

  #callOf(id: Json | undefined): UpstreamCall<Pipe> | undefined {
    const number = id?.asNumber()
    return this.#calls.find(call => call.id === number)
  }
}

const subscribedIn = ({ exchange }: UpstreamCall<Pipe>): readonly Json[] =>
  exchange.params.at('notifications', 'resourceSubscriptions')?.elements() ?? []

/** Whether its client is there and would miss updates of resources without a process. */
const needsProcess = (call: UpstreamCall<Pipe>): boolean =>
  subscribedIn(call).length > 0 && call.exchange.hasClient?.() !== false
