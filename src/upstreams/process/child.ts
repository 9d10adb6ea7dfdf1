import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { within } from '../../std/time.ts'
import { LineDecoder, LineTooLong } from '../../wire/ndjson.ts'
import type { ProcessHost } from './process-host.ts'
import type { Program } from './program.ts'
import { StderrBuffer, type StderrListener } from './stderr.ts'

interface ChildOptions {
  readonly host: ProcessHost
  readonly program: Program
  readonly cwd: string | undefined
  readonly env: Readonly<Record<string, string>>
  readonly tag: string // in the environment of every process that the child starts
  readonly maxLineBytes: number
  readonly exitMs: number // to exit after its stdin was closed
  readonly termMs: number // to exit after SIGTERM
  readonly onStderr?: StderrListener | undefined
}

/** How a process ended. */
export interface ProcessExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly isLineTooLong?: boolean // the gateway ended it, because of a line beyond the limit
}

/** Receives the output of a child. `exited` is called once, after the last line. */
export interface ChildHandler {
  line(line: Buffer): void
  exited(exit: ProcessExit): void
}

const STDERR_BYTES = 64 * 1024
const DRAIN_MS = 500 // for the last lines, when another process still holds the pipe
const KILL_MS = 2000
const POLL_MS = 25

/** A child process in a process group of its own. */
export class Child {
  readonly pid: number
  readonly startedAt = Date.now()
  readonly stderr = new StderrBuffer(STDERR_BYTES)
  readonly treeEnded: Promise<void> // the child and all processes it started have ended
  readonly #options: ChildOptions
  readonly #process: ChildProcessWithoutNullStreams
  readonly #handler: ChildHandler
  readonly #lines: LineDecoder
  readonly #exited: Promise<boolean>
  #exit: ProcessExit | undefined
  #isLineTooLong = false
  #isGone = false
  #isCorked = false
  #stopping: Promise<void> | undefined

  private constructor(
    options: ChildOptions,
    running: ChildProcessWithoutNullStreams,
    pid: number,
    handler: ChildHandler,
  ) {
    this.pid = pid
    this.#options = options
    this.#process = running
    this.#handler = handler
    this.#lines = new LineDecoder(line => this.#handler.line(line), { maxBytes: options.maxLineBytes })
    this.#exited = this.#attach()
    this.treeEnded = this.#exited.then(() => this.#endDescendants()).finally(options.host.reaper.track(pid))
  }

  /** Rejects with the error of the operating system. */
  static start(options: ChildOptions, handler: ChildHandler): Promise<Child> {
    const { host, program, cwd, env } = options
    host.reaper.start()
    return new Promise((resolve, reject) => {
      const running = spawn(program.file, [...program.args], {
        ...(cwd === undefined ? {} : { cwd }),
        env: { ...env },
        detached: process.platform !== 'win32',
        windowsHide: true,
        windowsVerbatimArguments: program.isVerbatim,
      })
      running.on('error', reject) // later ones (a signal that failed) have no effect
      if (running.pid !== undefined) resolve(new Child(options, running, running.pid, handler))
    })
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Bytes written that the process has not read yet. */
  get pendingBytes(): number {
    return this.#process.stdin.writableLength
  }

  /** Writes of one tick go out together. */
  write(bytes: Buffer): void {
    const { stdin } = this.#process
    if (!stdin.writable) return
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

  /** Closes stdin, then sends SIGTERM, then SIGKILL; resolves when the whole tree has ended. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  #attach(): Promise<boolean> {
    const { stdin, stdout, stderr } = this.#process
    for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {}) // `exit` or `close` follows
    stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    stderr.on('data', (chunk: Buffer) => {
      this.stderr.push(chunk)
      this.#options.onStderr?.(chunk)
    })
    // A server that closes its stdout cannot answer any more.
    stdout.once('close', () => (this.#exit ? this.#finish() : void this.stop()))
    return new Promise(resolve =>
      this.#process.once('exit', (code, signal) => {
        this.#exit = this.#isLineTooLong ? { code, signal, isLineTooLong: true } : { code, signal }
        if (stdout.destroyed) this.#finish()
        else setTimeout(() => this.#finish(), DRAIN_MS).unref()
        resolve(true)
      }),
    )
  }

  #read(chunk: Buffer): void {
    if (this.#isLineTooLong) return
    try {
      this.#lines.feed(chunk)
    } catch (error) {
      if (!(error instanceof LineTooLong)) throw error
      this.#isLineTooLong = true
      void this.stop()
    }
  }

  #finish(): void {
    if (this.#isGone) return
    if (!this.#isLineTooLong) this.#lines.end()
    this.#isGone = true
    for (const stream of this.#process.stdio) stream?.destroy()
    this.#handler.exited(this.#exit ?? { code: null, signal: null })
  }

  async #stop(): Promise<void> {
    this.#process.stdin.end()
    if (!(await this.#exitsWithin(this.#options.exitMs))) {
      signalGroup(this.pid, 'SIGTERM')
      if (!(await this.#exitsWithin(this.#options.termMs))) signalGroup(this.pid, 'SIGKILL')
    }
    if (await this.#exitsWithin(KILL_MS)) await this.treeEnded
  }

  #exitsWithin(ms: number): Promise<boolean> {
    return within(ms, this.#exited, () => false)
  }

  /** Ends the processes that the child left behind, in its group or (found by the tag) outside it. */
  async #endDescendants(): Promise<void> {
    if (await this.#haveEnded(0)) return
    if (await this.#haveEnded(this.#options.termMs, 'SIGTERM')) return
    await this.#haveEnded(KILL_MS, 'SIGKILL')
  }

  async #haveEnded(ms: number, signal?: NodeJS.Signals): Promise<boolean> {
    const { host, tag } = this.#options
    const until = Date.now() + ms
    for (let round = 0; ; round++) {
      const tagged = await host.table.findTagged(tag)
      const isGroupAlive = signalGroup(this.pid, 0) && (await host.table.isGroupAlive(this.pid))
      if (tagged.length === 0 && !isGroupAlive) return true
      // SIGTERM is sent once; SIGKILL in every round, for processes that were started meanwhile.
      if (signal === 'SIGKILL' || (signal && round === 0)) {
        signalGroup(this.pid, signal)
        for (const pid of tagged) sendSignal(pid, signal)
      }
      if (Date.now() >= until) return false
      await new Promise(resolve => setTimeout(resolve, POLL_MS)) // keeps the gateway alive until they have ended
    }
  }
}

const isWindows = process.platform === 'win32'

/** Signals a process and its group; false if none is left. On Windows every signal but 0 ends the tree. */
const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  if (!isWindows) return sendSignal(-pid, signal)
  if (signal === 0) return sendSignal(pid, 0)
  const killer = spawn('taskkill', ['/pid', String(pid), '/t', '/f'], { stdio: 'ignore', windowsHide: true })
  killer.on('error', () => {})
  return true
}

const sendSignal = (pid: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // it runs as another user
  }
}
