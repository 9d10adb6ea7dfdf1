import { Abort, type Signal } from '../../protocol/cancellation.ts'
import type { Message } from '../../wire/json-rpc.ts'
import { DISCONNECTED, type FailureDetails, UpstreamFailure } from '../failures.ts'
import type { ProcessExit } from '../process/child.ts'
import {
  type ProcessLimit,
  type ProcessOwner,
  type UsageLimit,
  type UsageLimits,
  watchUsage,
} from '../process/process-limits.ts'
import type { Pipe } from './pipe.ts'
import type { StdioLink } from './stdio-link.ts'

/** Whoever a process is kept for. */
export interface SupervisedProcess {
  readonly lastUsed: number
  readonly isWorking: boolean // its process must not be taken away
  /** Starts a process and opens the conversation; rejects with UpstreamFailure. */
  open(signal: Signal): Promise<Pipe>
  /** The process is there and may be sent to. */
  ready(pipe: Pipe): void
  message(message: Message): void
  /** That process is gone, unasked. */
  lost(pipe: Pipe, loss: FailureDetails): void
  /** The process is older than it should be. */
  aged(): void
  /** A request that every server of this era answers. */
  ping(): readonly Buffer[]
}

const ANSWER_MS = [50, 450, 4500] // looked for an answer after each

/** Keeps a process for a tenant: started when it is needed, and not kept for ever. */
export class ProcessSupervisor implements ProcessOwner {
  readonly #link: StdioLink
  readonly #tenant: SupervisedProcess
  readonly #roster: ProcessLimit
  readonly #bounds: UsageLimits
  readonly #closing = new Abort()
  readonly #pipes = new Map<Pipe, () => void>() // those that run, each with what ends the watch over it
  readonly #doubted = new WeakSet<Pipe>()
  #pipe: Pipe | undefined
  #starting: Promise<Pipe> | undefined

  constructor(link: StdioLink, tenant: SupervisedProcess, roster: ProcessLimit, bounds: UsageLimits) {
    this.#link = link
    this.#tenant = tenant
    this.#roster = roster
    this.#bounds = bounds
  }

  /** The process to send to, if there is one. */
  get pipe(): Pipe | undefined {
    return this.#pipe
  }

  /** Every process that runs, also those that only finish what they began. */
  get pipes(): Pipe[] {
    return [...this.#pipes.keys()]
  }

  get lastUsed(): number {
    return this.#tenant.lastUsed
  }

  get isBusy(): boolean {
    return this.#tenant.isWorking || this.#starting !== undefined
  }

  /** Settles with a process to send to; rejects with UpstreamFailure. */
  ensure(): Promise<Pipe> {
    if (this.#pipe) return Promise.resolve(this.#pipe)
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined
    })
    return this.#starting
  }

  /** Takes over a process that somebody else has opened. */
  adopt(pipe: Pipe): void {
    if (this.#closing.reason) return void pipe.child.stop()
    this.#roster.reserve(this)
    this.#keep(pipe)
  }

  endProcess(): void {
    if (this.#pipe) void this.end(this.#pipe)
  }

  /** Sends nothing more there; `end` it when its last answer is in. */
  retire(): void {
    this.#pipe = undefined
    this.#roster.release(this)
  }

  /** Settles when nothing of that process is left. */
  end(pipe: Pipe): Promise<void> {
    if (this.#forget(pipe)) pipe.readBy(NOBODY)
    return pipe.child.stop()
  }

  /** A call was not answered: a process that does not answer a ping either hangs, and is ended. */
  doubt(pipe: Pipe): void {
    if (!this.#pipes.has(pipe) || this.#doubted.has(pipe)) return
    const { lines } = pipe
    this.#doubted.add(pipe)
    pipe.send(this.#tenant.ping())
    const look = () => {
      this.#doubted.delete(pipe)
      if (pipe.lines === lines && this.#pipes.has(pipe))
        this.#endFor(pipe, 'did not answer a ping either and was ended')
    }
    setTimeout(look, this.#link.pingMs).unref()
  }

  /** Whether a process answers a ping; false: nothing was asked, because none runs or a call waits for it anyway. */
  async answers(): Promise<boolean> {
    const pipe = this.#pipe
    if (!pipe || this.#tenant.isWorking) return false
    const { lines } = pipe
    pipe.send(this.#tenant.ping())
    for (const ms of ANSWER_MS) {
      await new Promise(resolve => setTimeout(resolve, ms).unref())
      if (pipe.lines !== lines || pipe !== this.#pipe) return true
    }
    if (this.#tenant.isWorking) return false
    this.doubt(pipe)
    throw new UpstreamFailure(this.#link.name, { reason: 'upstream_timeout', text: 'does not answer a ping' })
  }

  async close(): Promise<void> {
    this.#closing.abort({ kind: 'closing' })
    await Promise.all([this.#starting?.catch(() => {}), ...this.pipes.map(pipe => this.end(pipe))])
  }

  async #start(): Promise<Pipe> {
    if (this.#closing.reason) throw new UpstreamFailure(this.#link.name, DISCONNECTED)
    this.#roster.reserve(this)
    try {
      const pipe = await this.#tenant.open(this.#closing)
      if (this.#closing.reason) {
        void pipe.child.stop()
        throw new UpstreamFailure(this.#link.name, DISCONNECTED)
      }
      this.#keep(pipe)
      return pipe
    } catch (error) {
      if (!this.#pipe) this.#roster.release(this)
      throw error
    }
  }

  #keep(pipe: Pipe): void {
    const { child } = pipe
    const idleSince = () => (this.#tenant.isWorking ? undefined : this.#tenant.lastUsed)
    const subject = { pid: child.pid, startedAt: child.startedAt, idleSince }
    this.#pipe = pipe
    this.#pipes.set(
      pipe,
      watchUsage(subject, this.#bounds, why => this.#due(pipe, why)),
    )
    this.#link.log.debug({ pid: child.pid }, 'started')
    this.#tenant.ready(pipe)
    pipe.readBy({ message: message => this.#tenant.message(message), gone: exit => this.#gone(pipe, exit) })
  }

  #due(pipe: Pipe, why: UsageLimit): void {
    if (!this.#pipes.has(pipe)) return
    if (why === 'memory') return this.#tooLarge(pipe)
    if (pipe !== this.#pipe) return
    if (why === 'idle') {
      this.#link.log.info({ pid: pipe.child.pid }, 'ended a process nobody uses')
      this.endProcess()
    } else this.#tenant.aged()
  }

  #tooLarge(pipe: Pipe): void {
    const mib = Math.round(this.#bounds.memoryBytes / 1024 / 1024)
    this.#endFor(pipe, `used more than ${mib} MiB of memory and was ended`)
  }

  #endFor(pipe: Pipe, text: string): void {
    this.#link.log.warn({ pid: pipe.child.pid, reason: text }, 'ended the server')
    void this.end(pipe)
    this.#tenant.lost(pipe, { reason: 'upstream_lost', text })
  }

  #gone(pipe: Pipe, exit: ProcessExit): void {
    if (!this.#forget(pipe)) return
    const { child } = pipe
    const loss = this.#link.lossOf(child, exit, 'upstream_lost')
    this.#link.restarts.recordCrash(loss, Date.now() - child.startedAt)
    const { text, stderr } = loss
    this.#link.log.warn(
      { pid: child.pid, code: exit.code, signal: exit.signal, reason: text, stderr },
      'the server ended',
    )
    this.#tenant.lost(pipe, loss)
  }

  #forget(pipe: Pipe): boolean {
    this.#pipes.get(pipe)?.()
    if (this.#pipe === pipe) {
      this.#pipe = undefined
      this.#roster.release(this)
    }
    return this.#pipes.delete(pipe)
  }
}

const NOBODY = { message: () => {}, gone: () => {} }
