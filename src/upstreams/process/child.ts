import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { LineDecoder, LineTooLong } from '../../wire/ndjson.ts'
import type { Program } from './command.ts'
import { guard, wakeGuardian } from './guardian.ts'
import { send, signalGroup } from './signal.ts'
import { StderrRing } from './stderr.ts'
import type { StderrTap } from './stderr-log.ts'
import { findMarked, hasLiving } from './tree.ts'

/** Everything needed to start one child. */
export interface ChildPlan {
  readonly program: Program
  readonly cwd: string | undefined
  readonly env: Readonly<Record<string, string>>
  readonly mark: string // found in the environment of everything it starts
  readonly maxLineBytes: number
  readonly exitMs: number // to leave after its stdin was closed
  readonly termMs: number // to leave after SIGTERM
  readonly onStderr?: StderrTap | undefined
}

/** How a process was over. */
export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly isTooLong?: boolean // we ended it, because of a line beyond the limit
}

/** What a child is read by. `gone` comes once and last. */
export interface ChildReader {
  line(line: Buffer): void
  gone(exit: Exit): void
}

const STDERR_BYTES = 64 * 1024
const DRAIN_MS = 500 // for the last lines, when somebody else still holds the pipe
const KILL_MS = 2000
const POLL_MS = 25

/** One running process with a group of its own, from its start until nothing of it is left. */
export class Child {
  readonly pid: number
  readonly startedAt = Date.now()
  readonly stderr = new StderrRing(STDERR_BYTES)
  readonly over: Promise<void> // neither the process nor anything it started is left
  readonly #plan: ChildPlan
  readonly #process: ChildProcessWithoutNullStreams
  readonly #reader: ChildReader
  readonly #lines: LineDecoder
  readonly #exited: Promise<void>
  #exit: Exit | undefined
  #isTooLong = false
  #isGone = false
  #isCorked = false
  #stopping: Promise<void> | undefined

  private constructor(plan: ChildPlan, running: ChildProcessWithoutNullStreams, pid: number, reader: ChildReader) {
    this.pid = pid
    this.#plan = plan
    this.#process = running
    this.#reader = reader
    this.#lines = new LineDecoder(line => this.#reader.line(line), { maxBytes: plan.maxLineBytes })
    this.#exited = this.#attach()
    this.over = this.#exited.then(() => this.#sweep()).finally(guard(pid))
  }

  /** Starts it; rejects with the error of the operating system. */
  static start(plan: ChildPlan, reader: ChildReader): Promise<Child> {
    wakeGuardian()
    return new Promise((resolve, reject) => {
      const { program, cwd, env } = plan
      const running = spawn(program.file, [...program.args], {
        ...(cwd === undefined ? {} : { cwd }),
        env: { ...env },
        detached: process.platform !== 'win32',
        windowsHide: true,
        windowsVerbatimArguments: program.isVerbatim,
      })
      running.on('error', reject) // later ones (a signal that failed) change nothing
      if (running.pid !== undefined) resolve(new Child(plan, running, running.pid, reader))
    })
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Bytes written that the process has not read yet. */
  get pendingBytes(): number {
    return this.#process.stdin.writableLength
  }

  write(bytes: Buffer): void {
    const { stdin } = this.#process
    if (!stdin.writable) return
    // What is written in one go travels in one go.
    if (!this.#isCorked) {
      this.#isCorked = true
      stdin.cork()
      process.nextTick(() => {
        this.#isCorked = false
        stdin.uncork()
      })
    }
    stdin.write(bytes)
  }

  /** Closes stdin, asks, then insists; settles when it is over. */
  stop(): Promise<void> {
    this.#stopping ??= this.#descend()
    return this.#stopping
  }

  #attach(): Promise<void> {
    const { stdin, stdout, stderr } = this.#process
    stdin.on('error', () => {}) // it closed its input, or is gone: we shall hear
    stdout.on('error', () => {})
    stderr.on('error', () => {})
    stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    stderr.on('data', (chunk: Buffer) => {
      this.stderr.push(chunk)
      this.#plan.onStderr?.(chunk)
    })
    // A server that closes its output has nothing more to say.
    stdout.once('close', () => (this.#exit ? this.#finish() : void this.stop()))
    return new Promise(resolve =>
      this.#process.once('exit', (code, signal) => {
        this.#exit = this.#isTooLong ? { code, signal, isTooLong: true } : { code, signal }
        if (stdout.destroyed) this.#finish()
        else setTimeout(() => this.#finish(), DRAIN_MS).unref()
        resolve()
      }),
    )
  }

  #read(chunk: Buffer): void {
    if (this.#isTooLong) return
    try {
      this.#lines.feed(chunk)
    } catch (error) {
      if (!(error instanceof LineTooLong)) throw error
      this.#isTooLong = true
      void this.stop()
    }
  }

  #finish(): void {
    if (this.#isGone) return
    if (!this.#isTooLong) this.#lines.end()
    this.#isGone = true
    for (const stream of this.#process.stdio) stream?.destroy()
    this.#reader.gone(this.#exit ?? { code: null, signal: null })
  }

  async #descend(): Promise<void> {
    this.#process.stdin.end()
    if (!(await this.#hasExited(this.#plan.exitMs))) {
      signalGroup(this.pid, 'SIGTERM')
      if (!(await this.#hasExited(this.#plan.termMs))) signalGroup(this.pid, 'SIGKILL')
    }
    if (await this.#hasExited(KILL_MS)) await this.over
  }

  #hasExited(ms: number): Promise<boolean> {
    if (this.#exit) return Promise.resolve(true)
    return new Promise(resolve => {
      const timer = setTimeout(() => resolve(false), ms)
      void this.#exited.then(() => {
        clearTimeout(timer)
        resolve(true)
      })
    })
  }

  /** The process is gone: ends what it left behind, in its group or, by the mark, elsewhere. */
  async #sweep(): Promise<void> {
    if (await this.#areGone(0)) return
    if (await this.#areGone(this.#plan.termMs, 'SIGTERM')) return
    await this.#areGone(KILL_MS, 'SIGKILL')
  }

  async #areGone(ms: number, signal?: NodeJS.Signals): Promise<boolean> {
    const until = Date.now() + ms
    for (let round = 0; ; round++) {
      const marked = await findMarked(this.#plan.mark)
      if (marked.length === 0 && !(signalGroup(this.pid, 0) && (await hasLiving(this.pid)))) return true
      // SIGTERM once is a request; SIGKILL is repeated, for whoever was started in between.
      if (signal === 'SIGKILL' || (signal && round === 0)) {
        signalGroup(this.pid, signal)
        for (const pid of marked) send(pid, signal)
      }
      if (Date.now() >= until) return false
      await new Promise(resolve => setTimeout(resolve, POLL_MS))
    }
  }
}
