import { ServedUsers } from '../../protocol/callers.ts'
import { Abort, type Signal } from '../../protocol/cancellation.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { sleep } from '../../std/time.ts'
import type { Json } from '../../wire/json/json.ts'
import { encodeRequest, type Message } from '../../wire/json-rpc.ts'
import { DISCONNECTED, type FailureDetails, forOtherCallers, UpstreamFailure, withoutQuotes } from '../failures.ts'
import type { ProcessExit } from '../process/child.ts'
import type { ProcessLimit, ProcessOwner } from '../process/process-limits.ts'
import { type UsageLimit, type UsageLimits, watchUsage } from '../process/process-limits.ts'
import type { UpstreamCall } from '../session/call.ts'
import { DROP_ALL, type Pipe } from './pipe.ts'
import type { StdioLink } from './stdio-link.ts'

/** The session, or the modern server, that a process runs for. */
export interface SupervisorHandler {
  readonly lastUsed: number
  readonly isBusy: boolean // its process must not be ended
  readonly hasCalled: boolean // a client has called it: it did more than list what it has
  /** Starts a process and detects its era or initializes it; rejects with UpstreamFailure. */
  startProcess(signal: Signal): Promise<Pipe>
  /** The process runs and can be sent to. */
  ready(pipe: Pipe): void
  message(message: Message): void
  /** That process has ended without being told to. */
  lost(pipe: Pipe, failure: FailureDetails): void
  /** The process has reached its greatest age. */
  aged(): void
  /** The process was ended because it was not used. */
  idleEnded?(): void
  /** A request that every server of this era answers. */
  ping(): readonly Buffer[]
}

/** What all processes of one server have in common. */
export interface SupervisorOptions {
  readonly limit: ProcessLimit
  readonly bounds: UsageLimits
}

const LISTED_MS = 10_000 // a process that only listed what it has is ended after this time
const ANSWER_MS = [50, 450, 4500] // an answer to a ping is looked for after each

/** Runs the process of one session or modern server: starts it when it is needed, sends to it, and ends it when it is idle or broken. */
export class ProcessSupervisor implements ProcessOwner {
  readonly #link: StdioLink
  readonly #handler: SupervisorHandler
  readonly #options: SupervisorOptions
  readonly #closing = new Abort()
  readonly #pipes = new Map<Pipe, () => void>() // of running processes, with what stops their monitoring
  readonly #suspected = new WeakSet<Pipe>()
  readonly #users = new ServedUsers()
  #pipe: Pipe | undefined
  readonly #starting = new SingleFlight<Pipe>()
  #isStuck = false // the process does not read

  constructor(link: StdioLink, handler: SupervisorHandler, options: SupervisorOptions) {
    this.#link = link
    this.#handler = handler
    this.#options = options
  }

  /** The process to send to, if one runs. */
  get pipe(): Pipe | undefined {
    return this.#pipe
  }

  /** The start that is under way, if any. */
  get starting(): Promise<Pipe> | undefined {
    return this.#starting.running
  }

  /** Every running process, also those that only finish their last calls. */
  get pipes(): Pipe[] {
    return [...this.#pipes.keys()]
  }

  get lastUsed(): number {
    return this.#handler.lastUsed
  }

  get isBusy(): boolean {
    return this.#handler.isBusy || this.#starting.running !== undefined
  }

  get hasServedUsers(): boolean {
    return !this.#users.areNone
  }

  /** With several users, no failure quotes what the process wrote: it may quote what another user sent. */
  addUser(caller: Caller): void {
    this.#users.add(caller)
  }

  /** Resolves with a process to send to; rejects with UpstreamFailure. */
  ensure(): Promise<Pipe> {
    if (this.#pipe) return Promise.resolve(this.#pipe)
    return this.#starting.run(() => this.#start())
  }

  /** Writes the request of a call; the call fails if the process is gone or does not read. */
  write(call: UpstreamCall<Pipe>, pipe: Pipe, params: Json): void {
    if (call.isDone) return
    if (pipe.child.isGone) return call.failOrRetry({ reason: 'upstream_lost', text: 'ended before it could be asked' })
    if (pipe.child.pendingBytes > this.#link.pendingBytes)
      return call.failOrRetry({ reason: 'upstream_busy', text: 'does not read what it is sent: try again later' })
    call.begin(pipe)
    call.recordSent(params)
    pipe.send(encodeRequest(call.id, call.exchange.method, params))
  }

  /** Sends a message that has no answer. It is dropped if no process runs, or if the process does not read. */
  post(pieces: readonly Buffer[], what: string, pipe = this.#pipe): void {
    if (!pipe) return
    const wasStuck = this.#isStuck
    this.#isStuck = pipe.child.pendingBytes > this.#link.pendingBytes
    if (!this.#isStuck) pipe.send(pieces)
    else if (!wasStuck) this.#link.log.warn({ what }, 'dropped a message: the server does not read what it is sent')
  }

  /** Sends a notification of a client; starts a process for it if none runs. */
  notify(pieces: readonly Buffer[], method: string): void {
    if (this.#pipe) return this.post(pieces, method)
    this.ensure().then(
      pipe => this.post(pieces, method, pipe),
      () => this.#link.log.warn({ method }, 'dropped a notification: the server does not run'),
    )
  }

  /** Takes over a process that was started for another session. */
  adopt(pipe: Pipe): void {
    if (this.#closing.reason) return void pipe.child.stop()
    this.#options.limit.reserve(this)
    this.#run(pipe)
  }

  /** Gives up the process without ending it: another owner takes it over. */
  handOver(): Pipe | undefined {
    const pipe = this.#pipe
    if (pipe) this.#remove(pipe)
    return pipe
  }

  endProcess(): void {
    if (this.#pipe) void this.end(this.#pipe)
    this.#handler.idleEnded?.()
  }

  /** Sends nothing more to the process; `end` it after its last answer. */
  retire(): void {
    this.#pipe = undefined
    this.#options.limit.release(this)
  }

  /** Resolves when nothing of that process is left. */
  end(pipe: Pipe): Promise<void> {
    if (this.#remove(pipe)) pipe.readBy(DROP_ALL)
    return pipe.child.stop()
  }

  /** A call timed out: the process is ended if it does not answer a ping either. */
  suspect(pipe: Pipe): void {
    if (!this.#pipes.has(pipe) || this.#suspected.has(pipe)) return
    const { lines } = pipe
    this.#suspected.add(pipe)
    pipe.send(this.#handler.ping())
    const check = () => {
      this.#suspected.delete(pipe)
      if (pipe.lines === lines && this.#pipes.has(pipe)) this.#kill(pipe, 'did not answer a ping either and was ended')
    }
    setTimeout(check, this.#link.pingMs).unref()
  }

  /** Whether the process answers a ping. False: none was sent, because none runs or a call waits for it anyway. */
  async answersPing(): Promise<boolean> {
    const pipe = this.#pipe
    if (!pipe || this.#handler.isBusy) return false
    const { lines } = pipe
    pipe.send(this.#handler.ping())
    for (const ms of ANSWER_MS) {
      await sleep(ms)
      if (pipe.lines !== lines || pipe !== this.#pipe) return true
    }
    if (this.#handler.isBusy) return false
    this.suspect(pipe)
    throw new UpstreamFailure(this.#link.name, { reason: 'upstream_timeout', text: 'does not answer a ping' })
  }

  async close(): Promise<void> {
    this.#closing.abort({ kind: 'closing' })
    await Promise.all([this.#starting.running?.catch(() => {}), ...this.pipes.map(pipe => this.end(pipe))])
  }

  async #start(): Promise<Pipe> {
    if (this.#closing.reason) throw new UpstreamFailure(this.#link.name, DISCONNECTED)
    this.#options.limit.reserve(this)
    try {
      const pipe = await this.#handler.startProcess(this.#closing)
      if (this.#closing.reason) {
        void pipe.child.stop()
        throw new UpstreamFailure(this.#link.name, DISCONNECTED)
      }
      this.#run(pipe)
      return pipe
    } catch (error) {
      if (!this.#pipe) this.#options.limit.release(this)
      throw this.#users.areSeveral ? forOtherCallers(error) : error
    }
  }

  #run(pipe: Pipe): void {
    const { pid, startedAt } = pipe.child
    const { idleMs } = this.#options.bounds
    const usage = {
      pid,
      startedAt,
      idleSince: () => (this.#handler.isBusy ? undefined : this.#handler.lastUsed),
      idleMs: () => (this.#handler.hasCalled ? idleMs : Math.min(idleMs, LISTED_MS)),
    }
    this.#pipe = pipe
    this.#pipes.set(
      pipe,
      watchUsage(usage, this.#options.bounds, why => this.#due(pipe, why)),
    )
    this.#link.log.debug({ pid }, 'process started')
    this.#handler.ready(pipe)
    pipe.readBy({ message: message => this.#handler.message(message), gone: exit => this.#gone(pipe, exit) })
  }

  #due(pipe: Pipe, why: UsageLimit): void {
    if (!this.#pipes.has(pipe)) return
    if (why === 'memory') {
      const mib = Math.round(this.#options.bounds.memoryBytes / 1024 / 1024)
      return this.#kill(pipe, `used more than ${mib} MiB of memory and was ended`)
    }
    if (pipe !== this.#pipe) return
    if (why === 'lifetime') return this.#handler.aged()
    this.#link.log.info({ pid: pipe.child.pid }, 'idle process ended')
    this.endProcess()
  }

  #kill(pipe: Pipe, text: string): void {
    this.#link.log.warn({ pid: pipe.child.pid, reason: text }, 'process killed')
    void this.end(pipe)
    this.#handler.lost(pipe, { reason: 'upstream_lost', text })
  }

  #gone(pipe: Pipe, exit: ProcessExit): void {
    if (!this.#remove(pipe)) return
    const { child } = pipe
    const failure = this.#link.failureOf(child, exit, 'upstream_lost')
    this.#link.restarts.recordCrash(failure, Date.now() - child.startedAt)
    const { text: reason, stderr } = failure
    this.#link.log.warn({ pid: child.pid, code: exit.code, signal: exit.signal, reason, stderr }, 'process exited')
    this.#handler.lost(pipe, this.#users.areSeveral ? withoutQuotes(failure) : failure)
  }

  #remove(pipe: Pipe): boolean {
    this.#pipes.get(pipe)?.()
    if (this.#pipe === pipe) this.retire()
    return this.#pipes.delete(pipe)
  }
}
