import type { Signal } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { NOTIFICATIONS } from '../../protocol/notifications.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import { encodeRequest, type Message } from '../../wire/json-rpc.ts'
import { errorOfThrown, type FailureDetails } from '../failures.ts'
import type { UpstreamCall } from '../session/call.ts'
import type { Handshake } from '../session/handshake.ts'
import type { LegacySession } from '../session/session.ts'
import type { SessionTransport } from '../session/session-transport.ts'
import { sharerOf } from '../session/sharers.ts'
import type { Pipe } from './pipe.ts'
import { ProcessSupervisor, type SupervisorHandler, type SupervisorOptions } from './process-supervisor.ts'
import { RootsWait } from './roots-wait.ts'
import type { Spare, SpareProcess } from './spare-process.ts'
import type { StdioLink } from './stdio-link.ts'

interface StdioTransportOptions extends SupervisorOptions {
  readonly handshake: Handshake | undefined // of another process of this server: then the first call starts the process
  readonly startsAtOnce: boolean // although the handshake is known: the caller has another session to fall back on
  /** Starts a process that answers `initialize` as the one before did; rejects with UpstreamFailure. */
  start(
    caller: Caller,
    signal: Signal,
    expected: Handshake | undefined,
  ): Promise<{ readonly pipe: Pipe; readonly handshake: Handshake }>
  readonly spare: SpareProcess
  /** The server has asked a client something. */
  onQuestion(method: string): void
}

const RESTART_MS = 1000

/** Carries a legacy session over stdio: one process. If the process ends, the next call starts another. */
export class StdioTransport implements SessionTransport<Pipe>, SupervisorHandler {
  readonly isShared = true
  readonly dialect = 'stdio'
  readonly correlates = false
  readonly hasBackChannel = true
  readonly link: StdioLink
  readonly #session: LegacySession<Pipe>
  readonly #caller: Caller
  readonly #options: StdioTransportOptions
  readonly #supervisor: ProcessSupervisor
  #handshake: Handshake | undefined
  #rootsWait: RootsWait | undefined // of the process that was started last
  #hasRun = false
  #startedFor: string | undefined // the client that needed the process first

  constructor(session: LegacySession<Pipe>, link: StdioLink, caller: Caller, options: StdioTransportOptions) {
    this.link = link
    this.#session = session
    this.#caller = caller
    this.#options = options
    this.#supervisor = new ProcessSupervisor(link, this, options)
    if (options.handshake) this.#adopt(options.handshake)
  }

  get revision(): Revision {
    return this.#session.revision
  }

  get lastUsed(): number {
    return this.#session.lastUsed
  }

  /** A process with subscriptions is kept while their clients are there: it is the one that sends the updates. */
  get isBusy(): boolean {
    return this.#session.isWorking || this.#session.needsConnection
  }

  get hasCalled(): boolean {
    return this.#session.hasCalled
  }

  get isRunning(): boolean {
    return this.#supervisor.pipe !== undefined || this.#supervisor.starting !== undefined
  }

  get pipes(): Pipe[] {
    return this.#supervisor.pipes
  }

  answersPing(): Promise<boolean> {
    return this.#supervisor.answersPing()
  }

  async open(): Promise<void> {
    if (this.#handshake && !this.#options.startsAtOnce) return
    this.#startedFor = sharerOf(this.#caller)
    await this.#supervisor.ensure()
  }

  /** Resolves when the server has had the time to ask for the roots of the other client that the process was started for. */
  settling(caller: Caller): Promise<void> | undefined {
    if (this.#startedFor === sharerOf(caller)) return undefined
    const { starting } = this.#supervisor
    if (starting)
      return starting.then(
        () => this.settling(caller),
        () => {},
      )
    const wait = this.#rootsWait
    return wait && !wait.isOver ? new Promise(resolve => wait.run(resolve)) : undefined
  }

  noteUser(caller: Caller): void {
    this.#supervisor.addUser(caller)
  }

  send(call: UpstreamCall<Pipe>): undefined {
    const { pipe } = this.#supervisor
    if (pipe) return void this.#write(call, pipe)
    if (!this.#supervisor.starting) this.#startedFor = sharerOf(call.exchange.caller)
    this.#supervisor.ensure().then(
      started => this.#write(call, started),
      (thrown: unknown) => call.fail(errorOfThrown(this.link.name, thrown)),
    )
  }

  timedOut({ target }: UpstreamCall<Pipe>): void {
    if (target) this.#supervisor.suspect(target)
  }

  post(pieces: Buffer[], what: string): void {
    this.#supervisor.post(pieces, what)
  }

  notify(pieces: Buffer[], method: string): void {
    const isNeedless = method === NOTIFICATIONS.rootsChanged && !this.#supervisor.pipe // a new process asks for roots
    if (!isNeedless) this.#supervisor.notify(pieces, method)
  }

  /** Nothing says which call a question belongs to: it may be any that can be asked. */
  findAsked(calls: readonly UpstreamCall<Pipe>[]): readonly UpstreamCall<Pipe>[] {
    const isWaiting = this.#rootsWait?.isOver === false // then also a call that has not been sent yet
    return calls.filter(({ canBeAsked, target }) => canBeAsked && (isWaiting || target !== undefined))
  }

  questionAsked(method: string): (() => void) | undefined {
    this.#options.onQuestion(method)
    return method === 'roots/list' ? this.#rootsWait?.asked() : undefined
  }

  close(): Promise<void> {
    const pipe = this.#caller.isHealthCheck ? this.#supervisor.handOver() : undefined
    if (pipe && this.#handshake)
      this.#options.spare.keep({ pipe, handshake: this.#handshake, lastId: this.#session.lastId })
    return this.#supervisor.close()
  }

  async startProcess(signal: Signal): Promise<Pipe> {
    const { spare, start } = this.#options
    try {
      const taken: Partial<Spare> & Pick<Spare, 'pipe' | 'handshake'> =
        spare.take(this.#caller, this.#handshake) ?? (await start(this.#caller, signal, this.#handshake))
      this.#session.startAfter(taken.lastId ?? 0)
      this.#adopt(taken.handshake)
      return taken.pipe
    } catch (error) {
      this.#session.closeIfReplaced(error)
      throw error
    }
  }

  /** Restores the state of the session: a new process has none of it. */
  ready(pipe: Pipe): void {
    if (this.#caller.capabilities.has('roots'))
      this.#rootsWait = new RootsWait(() => {
        pipe.send(this.ping())
        return this.#session.lastId
      })
    for (const [method, params] of this.#session.replayRequests())
      pipe.send(encodeRequest(this.#session.nextId(), method, params))
    if (this.#hasRun) this.#session.announceMissed()
    this.#hasRun = true
  }

  message(message: Message): void {
    if (message.kind !== 'request' && message.kind !== 'notification') {
      if (this.#rootsWait?.answered(message.id?.asNumber())) return
      // An error without the id of a call is about the only call; an error with a foreign id is about no call.
      const hasNoCall = message.kind === 'error' && message.id?.kind !== 'number'
      if (hasNoCall && (message.id || this.#session.calls.length !== 1)) return
    }
    this.#session.received(message)
  }

  lost(pipe: Pipe, failure: FailureDetails): void {
    this.#rootsWait?.end()
    this.#session.clearQuestions()
    for (const call of this.#session.calls.filter(({ target }) => target === pipe)) call.processEnded(failure)
    this.#restart()
  }

  aged(): void {
    if (this.isBusy) return // the supervisor reports it again later
    this.link.log.info({ pid: this.#supervisor.pipe?.child.pid }, 'process ended after its maximum lifetime')
    this.#supervisor.endProcess()
  }

  /** Subscriptions without a client do not keep a process; when the client is back, it gets its updates again. */
  idleEnded(): void {
    if (!this.#session.hasSubscriptions || this.#session.isClosing || this.#supervisor.pipe) return
    if (this.#session.needsConnection) return this.#restart()
    setTimeout(() => this.idleEnded(), RESTART_MS).unref()
  }

  ping(): readonly Buffer[] {
    return encodeRequest(this.#session.nextId(), 'ping', Json.empty)
  }

  #adopt(handshake: Handshake): void {
    this.#handshake = handshake
    this.#session.initialized(handshake)
  }

  /** Only calls during which servers may need roots wait for them. */
  #write(call: UpstreamCall<Pipe>, pipe: Pipe): void {
    if (call.canBeAsked && this.#rootsWait) this.#rootsWait.run(() => this.#supervisor.write(call, pipe, call.params))
    else this.#supervisor.write(call, pipe, call.params)
  }

  /** A process that ended by itself is replaced for every listener: the new one may have other lists. */
  #restart(): void {
    if (!this.#session.isListenedTo || this.#supervisor.pipe) return
    this.#supervisor.ensure().catch(() => {
      setTimeout(() => this.#restart(), this.link.restarts.pausedMs || RESTART_MS).unref()
    })
  }
}
