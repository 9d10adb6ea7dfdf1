import type { Signal } from '../../protocol/cancellation.ts'
import { deliver } from '../../protocol/deliver.ts'
import type { Caller, Dispatch, Exchange, Frame } from '../../protocol/exchange.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { Users } from '../../protocol/users.ts'
import { Json } from '../../wire/json/json.ts'
import { type Message, notificationPieces, requestPieces, resultPieces } from '../../wire/json-rpc.ts'
import {
  DISCONNECTED,
  errorOfThrown,
  type FailureDetails,
  forOtherCallers,
  toRpcError,
  UpstreamFailure,
  withoutQuotes,
} from '../failures.ts'
import type { ProcessLimit, UsageLimits } from '../process/process-limits.ts'
import { discovered } from '../session/discovered.ts'
import type { Place, Pooled } from '../session/pool.ts'
import { Questions } from '../session/questions.ts'
import { SessionReplay } from '../session/session-replay.ts'
import { Standing } from '../session/standing.ts'
import type { Greeting } from './open-process.ts'
import type { Pipe } from './pipe.ts'
import { ProcessSupervisor, type SupervisedProcess } from './process-supervisor.ts'
import { StartFence } from './start-fence.ts'
import { type CallHome, StdioCall } from './stdio-call.ts'
import type { StdioLink } from './stdio-link.ts'

/** What a session is opened with. */
export interface SessionOptions extends Place {
  readonly roster: ProcessLimit
  readonly bounds: UsageLimits
  readonly holdMs: number // a question nobody can be asked yet
  readonly greeting: Greeting | undefined // of another process of this server: then none is started before a call
  /** Starts a process for that caller, which greets as it was promised; rejects with UpstreamFailure. */
  open(
    caller: Caller,
    signal: Signal,
    promised: Greeting | undefined,
  ): Promise<{ readonly pipe: Pipe; readonly greeting: Greeting }>
}

const REVIVE_MS = 1000
const INITIALIZED = 'notifications/initialized'
const ROOTS_CHANGED = 'notifications/roots/list_changed'

/** A legacy session over stdio: one caller, one process; should it end, the next call gets another. */
export class StdioSession implements Pooled, CallHome, SupervisedProcess {
  readonly asks = true
  readonly correlates = false
  readonly link: StdioLink
  lastUsed = Date.now()

  readonly #caller: Caller
  readonly #options: SessionOptions
  readonly #keeper: ProcessSupervisor
  readonly #standing: Standing
  readonly #questions = new Questions((pieces, what) => this.#say(this.#keeper.pipe, pieces, what))
  readonly #calls: StdioCall[] = []
  readonly #told = new SessionReplay()
  #greeting: Greeting | undefined
  #fence: StartFence | undefined // of the process that was started last
  #hasRun = false
  #isStuck = false // its process does not read
  readonly #users = new Users()
  #lastId = 0
  #closing: Promise<void> | undefined

  constructor(link: StdioLink, caller: Caller, options: SessionOptions) {
    this.link = link
    this.#caller = caller
    this.#options = options
    this.#greeting = options.greeting
    this.#standing = new Standing({ holdMs: options.holdMs, expectsSomebody: options.isDedicated })
    this.#keeper = new ProcessSupervisor(link, this, options.roster, options.bounds)
  }

  /**
   * Must come first: starts a process where one must be asked who it is, and where the caller has another session to
   * fall back on; rejects with UpstreamFailure.
   */
  async begin(): Promise<void> {
    if (!this.#greeting || this.#caller.lane) await this.#keeper.ensure()
  }

  get revision(): Revision {
    return this.#greeted.revision
  }

  /** The session is needed; its process perhaps not. */
  get isBusy(): boolean {
    return this.isWorking || this.#standing.isNeeded
  }

  get isWorking(): boolean {
    return this.#calls.length > 0 || this.#told.isWatching || this.#questions.size > 0
  }

  get pipes(): Pipe[] {
    return this.#keeper.pipes
  }

  answers(): Promise<boolean> {
    return this.#keeper.answers()
  }

  readonly dispatch: Dispatch = exchange => {
    this.lastUsed = Date.now()
    this.#users.add(exchange.caller)
    if (exchange.kind === 'notification') return this.#notify(exchange)
    if (this.#closing)
      return void deliver(exchange.sink, { kind: 'failure', error: toRpcError(this.link.name, DISCONNECTED) })
    const local = LOCAL[exchange.method]
    if (local && Object.hasOwn(LOCAL, exchange.method)) return local(this, exchange)
    const call = new StdioCall(this, exchange, ++this.#lastId)
    this.#calls.push(call)
    call.start()
  }

  discover(exchange: Exchange): void {
    void deliver(exchange.sink, { kind: 'result', result: discovered(this.#greeted.result) })
  }

  listen(exchange: Exchange): void {
    this.#standing.attach(exchange, this.#capabilities, () => {
      this.#questions.leave(exchange)
      this.lastUsed = Date.now()
      if (this.#options.isDedicated && this.#standing.size === 0) void this.close()
    })
  }

  /** Ends everything, the process too. */
  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  prepare(params: Json): Json {
    return params
  }

  doubt(pipe: Pipe): void {
    this.#keeper.doubt(pipe)
  }

  transmit(call: StdioCall): void {
    const { pipe } = this.#keeper
    if (pipe) return this.#send(call, pipe)
    this.#keeper.ensure().then(
      started => this.#send(call, started),
      (thrown: unknown) =>
        call.fail(errorOfThrown(this.link.name, this.#users.areSeveral ? forOtherCallers(thrown) : thrown)),
    )
  }

  finished(call: StdioCall, frame: Frame | undefined): void {
    const at = this.#calls.indexOf(call)
    if (at >= 0) this.#calls.splice(at, 1)
    this.lastUsed = Date.now()
    const heir = this.#standing.last ?? this
    // A call the server has answered did not own what it still asks; a cancelled one may not have, either.
    if (frame || this.#calls.some(({ canBeAsked }) => canBeAsked)) this.#questions.handOver(call, heir)
    else this.#questions.abandon(call, heir)
    if (frame?.kind === 'result') this.#told.remember(call.exchange)
  }

  async open(signal: Signal): Promise<Pipe> {
    try {
      const { pipe, greeting } = await this.#options.open(this.#caller, signal, this.#greeting)
      this.#greeting = greeting
      return pipe
    } catch (error) {
      // It is another server than it was, and nothing this session was promised holds.
      if (error instanceof UpstreamFailure && error.reason === 'upstream_protocol') void this.close()
      throw error
    }
  }

  /** A new process knows nothing of what the one before was told. */
  ready(pipe: Pipe): void {
    if (this.#caller.capabilities.has('roots'))
      this.#fence = new StartFence(() => {
        pipe.send(this.ping())
        return this.#lastId
      })
    if (this.#hasRun) {
      for (const [method, params] of this.#told.again()) pipe.send(requestPieces(++this.#lastId, method, params))
      this.#standing.changed(this.#capabilities)
    }
    this.#hasRun = true
  }

  message(message: Message): void {
    switch (message.kind) {
      case 'request':
        return this.#asked(message)
      case 'notification':
        return this.#noticed(message.method, message.params)
      default:
        if (this.#fence?.answered(message.id?.asNumber())) return
        ;(message.id ? this.#callOf(message.id) : this.#only)?.answered(message)
    }
  }

  lost(pipe: Pipe, loss: FailureDetails): void {
    this.#fence?.open()
    this.#questions.clear()
    const told = this.#users.areSeveral ? withoutQuotes(loss) : loss
    for (const call of this.#calls.filter(call => call.pipe === pipe)) call.lost(told)
    this.#revive()
  }

  aged(): void {
    if (this.isWorking) return // it is asked again in a while
    this.link.log.info({ pid: this.#keeper.pipe?.child.pid }, 'ended a process that has lived long enough')
    this.#keeper.endProcess()
  }

  ping(): readonly Buffer[] {
    return requestPieces(++this.#lastId, 'ping', Json.empty)
  }

  get #greeted(): Greeting {
    if (!this.#greeting) throw new Error('a session without a handshake')
    return this.#greeting
  }

  get #capabilities(): Json | undefined {
    return this.#greeted.result.get('capabilities')
  }

  /** Whoever watches resources hears of them only while a process runs. */
  #revive(): void {
    if (!this.#told.isWatching || this.#standing.size === 0 || this.#closing) return
    this.#keeper.ensure().catch(() => {
      setTimeout(() => this.#revive(), this.link.restarts.pausedMs || REVIVE_MS).unref()
    })
  }

  /** Only what servers may need roots for waits for the fence. */
  #send(call: StdioCall, pipe: Pipe): void {
    if (call.canBeAsked && this.#fence) this.#fence.pass(() => call.send(pipe))
    else call.send(pipe)
  }

  #notify(exchange: Exchange): void {
    const { pipe } = this.#keeper
    if (exchange.method === INITIALIZED || this.#closing) return // ours was sent with the handshake
    const say = (to: Pipe): void => this.#say(to, notificationPieces(exchange.method, exchange.params), exchange.method)
    if (pipe) return say(pipe)
    if (exchange.method === ROOTS_CHANGED) return // a new process asks for them anyway
    this.#keeper
      .ensure()
      .then(say, () =>
        this.link.log.warn({ method: exchange.method }, 'dropped a notification: the server does not run'),
      )
  }

  /** Sends what has no answer; a process that reads nothing gets no more of it than there is room for. */
  #say(pipe: Pipe | undefined, pieces: Buffer[], what: string): void {
    if (!pipe) return
    const wasStuck = this.#isStuck
    this.#isStuck = pipe.child.pendingBytes > this.link.pendingBytes
    if (!this.#isStuck) pipe.send(pieces)
    else if (!wasStuck) this.link.log.warn({ what }, 'dropped a message: the server does not read what it is sent')
  }

  /** On a pipe nothing says which call a question belongs to: most likely it is the latest that can carry one. */
  #asked(message: Extract<Message, { kind: 'request' }>): void {
    if (message.method === 'ping')
      return this.#say(this.#keeper.pipe, resultPieces(message.id, Json.empty), 'answer to ping')
    const isFenced = this.#fence?.isClosed === true // then a call that waits for the process can carry it, too
    const call = this.#calls.findLast(({ canBeAsked, pipe }) => canBeAsked && (isFenced || pipe !== undefined))
    const passed = message.method === 'roots/list' ? this.#fence?.asked() : undefined
    const question = this.#questions.ask(message, call ?? this.#standing.last ?? this, () => {
      call?.settled()
      passed?.()
    })
    if (!question) return passed?.()
    if (call) call.ask(question)
    else this.#standing.ask(question)
  }

  #noticed(method: string, params: Json): void {
    if (method === 'notifications/cancelled') return this.#questions.withdraw(params.get('requestId'))
    if (method === 'notifications/progress') return this.#callOf(params.get('progressToken'))?.progressed(params)
    const call = method === 'notifications/message' ? this.#only : undefined
    if (call) call.notice(method, params)
    else this.#standing.notice(method, params)
  }

  #callOf(id: Json | undefined): StdioCall | undefined {
    const number = id?.asNumber()
    return this.#calls.find(call => call.id === number)
  }

  /** What has no id, an error or a log line, is about the only thing that was asked, if only one was. */
  get #only(): StdioCall | undefined {
    return this.#calls.length === 1 ? this.#calls[0] : undefined
  }

  async #end(): Promise<void> {
    const closing = this.#keeper.close()
    this.#options.onClosed(closing)
    for (const call of [...this.#calls]) call.lose(DISCONNECTED)
    this.#questions.clear()
    this.#standing.close({ kind: 'result', result: Json.of({ resultType: 'complete' }) })
    await closing
  }
}

/** What a legacy server has no word for and the session answers itself. */
const LOCAL: Readonly<Record<string, (session: StdioSession, exchange: Exchange) => void>> = {
  'server/discover': (session, exchange) => session.discover(exchange),
  'subscriptions/listen': (session, exchange) => session.listen(exchange),
}
