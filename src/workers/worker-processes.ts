import type { Socket } from 'node:net'
import { backoffMs, sleep } from '../std/time.ts'
import type { Wake } from '../stores/state/wake.ts'
import type { Log } from '../telemetry/log.ts'
import type { LogHistory } from '../telemetry/log-history.ts'
import type { MainMessage, ServerOrder, StoppedServer, WorkerFacts, WorkerLoad, WorkerMessage } from './messages.ts'
import {
  type OpenPort,
  type PublicAddress,
  type SharedPort,
  shareConnections,
  type TakeConnection,
} from './share-connections.ts'
import { WorkerProcess } from './worker-process.ts'

export interface WorkerProcessesOptions {
  readonly count: number // of all workers; the main process is one of them
  readonly history: LogHistory // gets the lines of all workers
  readonly log: Log
}

/** What the gateway of the main process does for its workers. */
export interface WorkersAccess {
  readonly localSecret: string
  readonly file: () => string | undefined
  /** A worker has ended: others may take what it held. */
  readonly onEnded: (replica: string) => void
  readonly onAudit: (lines: Buffer) => void
  /** Whether a console shows what is recorded; if so, workers report it. */
  readonly isWatched: () => boolean
  readonly onRecordings: (rows: readonly object[], dropped: number) => void
}

const BACKOFF = { firstMs: 250, longestMs: 30_000 }
const LASTING_MS = 60_000 // a worker that ran for so long is started again at once
const TICK_MS = 1000
const SILENT_TICKS = 30 // a worker that hangs for so long is ended
const STOP_GRACE_MS = 5000 // besides the time that calls have to end

/** The other processes of a gateway that uses several cores. They end with this one, however it ends. */
export class WorkerProcesses {
  readonly wake: Wake
  readonly #options: WorkerProcessesOptions
  readonly #workers = new Set<WorkerProcess>()
  readonly #switched = new Map<string, boolean>()
  #access: WorkersAccess | undefined
  #port: SharedPort | undefined
  #ticking: NodeJS.Timeout | undefined
  #isStopping = false
  #onWake: (topic: string) => void = () => {}

  constructor(options: WorkerProcessesOptions) {
    this.#options = options
    this.wake = {
      send: async topics => this.#sendAll({ kind: 'wake', topics }),
      onWake: listener => {
        this.#onWake = listener
      },
      close: async () => {},
    }
  }

  /** What each worker has reported last. */
  get loads(): readonly WorkerLoad[] {
    return this.#ready().flatMap(({ load }) => load ?? [])
  }

  /** Opens the port of the gateway. `accept` takes the share of this process. */
  async open(address: PublicAddress, accept: TakeConnection): Promise<OpenPort> {
    const takeHere: TakeConnection = socket => {
      accept(socket)
      socket.resume()
    }
    const port = await shareConnections(address, () => [
      takeHere,
      ...this.#ready()
        .filter(({ isTaking }) => isTaking)
        .map(worker => (socket: Socket) => worker.give(socket)),
    ])
    this.#port = port
    return port
  }

  /** Starts the workers. They get connections as soon as they are ready. */
  start(access: WorkersAccess): void {
    this.#access = access
    for (let number = 2; number <= this.#options.count; number++) this.#startOne(number, 0)
    this.#ticking = setInterval(() => this.#tick(), TICK_MS).unref()
  }

  reload(file: string | undefined): void {
    this.#sendAll({ kind: 'reload', file })
  }

  /** Repeats in all workers, also in those that start later, what the owner does with a server. */
  order(order: ServerOrder): void {
    if (order.action === 'switch') this.#switched.set(order.server, order.isStopped)
    this.#sendAll({ kind: 'order', order })
  }

  /** The answers of the workers that answer in time, by the process id of each. */
  async ask(question: string, about?: unknown): Promise<ReadonlyMap<number, unknown>> {
    const asked = this.#ready().map(async worker => [worker.pid ?? 0, await worker.ask(question, about)] as const)
    return new Map((await Promise.all(asked)).filter(([, answer]) => answer !== undefined))
  }

  /** The process ids of the workers that run. */
  get pids(): ReadonlySet<number> {
    return new Set([...this.#workers].map(({ pid }) => pid ?? 0))
  }

  /** Lets the workers finish their calls, at most for that time, and end. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true
    clearInterval(this.#ticking)
    this.#sendAll({ kind: 'stop' })
    const end = Date.now() + graceMs + STOP_GRACE_MS
    while (this.#workers.size > 0 && Date.now() < end) await sleep(20)
    for (const worker of this.#workers) worker.kill()
    while (this.#workers.size > 0) await sleep(20)
  }

  #ready(): readonly WorkerProcess[] {
    return [...this.#workers].filter(({ isReady }) => isReady)
  }

  #startOne(number: number, failures: number): void {
    const access = this.#access
    if (this.#isStopping || !access) return
    const startedAt = Date.now()
    const { log } = this.#options
    const worker: WorkerProcess = new WorkerProcess(this.#factsFor(number, access), {
      onReady: () => log.info({ worker: number, pid: worker.pid }, 'worker ready'),
      onMessage: message => this.#receive(worker, message),
      onUntaken: sockets => {
        for (const socket of sockets) this.#port?.share(socket)
      },
      onEnd: (code, signal) => {
        this.#workers.delete(worker)
        if (worker.replica !== undefined) access.onEnded(worker.replica)
        if (this.#isStopping) return
        const earlier = Date.now() - startedAt > LASTING_MS ? 0 : failures
        const waitMs = Math.round(backoffMs(BACKOFF, earlier))
        log.error({ worker: number, pid: worker.pid, code, signal, waitMs }, 'worker ended; it is started again')
        setTimeout(() => this.#startOne(number, earlier + 1), waitMs).unref()
      },
    })
    this.#workers.add(worker)
  }

  #factsFor(number: number, { localSecret, file }: WorkersAccess): WorkerFacts {
    const stopped: StoppedServer[] = [...this.#switched].map(([server, isStopped]) => ({ server, isStopped }))
    return { number, port: this.#port?.port ?? 0, localSecret, file: file(), stopped }
  }

  #receive(from: WorkerProcess, message: WorkerMessage): void {
    switch (message.kind) {
      case 'wake':
        for (const worker of this.#workers) if (worker !== from) worker.send(message)
        for (const topic of message.topics) this.#onWake(topic)
        return
      case 'log':
        for (const line of message.lines) this.#options.history.add(line)
        return
      case 'audit':
        return this.#access?.onAudit(Buffer.from(message.lines))
      case 'recordings':
        this.#access?.onRecordings(message.rows, message.dropped)
    }
  }

  #sendAll(message: MainMessage): void {
    for (const worker of this.#workers) worker.send(message)
  }

  /** Counts ticks instead of time: while this process hangs, no worker is to blame. */
  #tick(): void {
    for (const worker of this.#ready()) {
      worker.setWatched(this.#access?.isWatched() ?? false)
      if (++worker.silentTicks < SILENT_TICKS) continue
      this.#options.log.error({ worker: worker.number, pid: worker.pid }, 'worker does not respond; it is ended')
      worker.kill()
    }
  }
}
