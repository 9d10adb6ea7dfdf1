import type { Socket } from 'node:net'
import { within } from '../std/time.ts'
import type { Wake } from '../stores/state/wake.ts'
import type { LogHistory, LogLine } from '../telemetry/log-history.ts'
import type { MainMessage, ServerOrder, WorkerFacts, WorkerLoad, WorkerMessage } from './messages.ts'
import type { OpenPort, PublicAddress, TakeConnection } from './share-connections.ts'

/** What the gateway of a worker does for the main process. */
export interface WorkerDuties {
  readonly load: () => WorkerLoad
  readonly onOrder: (order: ServerOrder) => void
  /** Answers the questions of the main process; undefined if it does not know one. */
  readonly answer: (question: string, about: unknown) => unknown
}

const LOAD_MS = 1000
const LOG_MS = 100 // lines within this time are sent together
const START_MS = 10_000

const endWithMain = (): void => process.exit(1)

/** The main process as a worker sees it. If it ends, this process ends, too: no client can reach it any more. */
export class MainLink {
  readonly wake: Wake
  readonly facts: WorkerFacts
  /** Resolves when the main process wants this one to end. */
  readonly stopped: Promise<string>
  onReload: (file: string | undefined) => void = () => {}
  #duties: WorkerDuties | undefined
  #accept: TakeConnection | undefined
  #onWake: (topic: string) => void = () => {}
  #lines: LogLine[] = []
  #stop: (why: string) => void = () => {}
  #isWatched = false

  private constructor(facts: WorkerFacts) {
    this.facts = facts
    this.stopped = new Promise(resolve => {
      this.#stop = resolve
    })
    this.wake = {
      send: async topics => this.#send({ kind: 'wake', topics }),
      onWake: listener => {
        this.#onWake = listener
      },
      close: async () => {},
    }
    process.on('SIGTERM', () => this.#stop('SIGTERM'))
    process.on('message', (message, socket) => this.#receive(message as MainMessage, socket as Socket | undefined))
  }

  /** Resolves with the first message of the main process. */
  static connect(): Promise<MainLink> {
    process.once('disconnect', endWithMain)
    // A terminal sends these signals to all processes; the main process tells when to end.
    for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {})
    const connected = new Promise<MainLink>(resolve => {
      process.once('message', message => {
        const first = message as MainMessage
        if (first.kind === 'start') resolve(new MainLink(first.facts))
      })
    })
    const late = (): never => {
      throw new Error('the main process did not say what this worker is to do')
    }
    return within(START_MS, connected, late)
  }

  /** This process has ended its work. */
  leave(): void {
    this.#sendLines()
    process.off('disconnect', endWithMain)
    if (process.connected) process.disconnect()
  }

  /** Sends the lines of this process's log to the history of the main process. */
  shareLog(history: LogHistory): void {
    history.follow(line => {
      if (this.#lines.length === 0) setTimeout(() => this.#sendLines(), LOG_MS).unref()
      this.#lines.push(line)
    })
  }

  /** Takes the connections that the main process gives this one, once it is ready. */
  async open(_address: PublicAddress, accept: TakeConnection): Promise<OpenPort> {
    this.#accept = accept
    return {
      port: this.facts.port,
      stop: () => {
        this.#accept = undefined
      },
    }
  }

  /** Tells the main process that this one serves. */
  ready(replica: string, duties: WorkerDuties): void {
    this.#duties = duties
    this.#send({ kind: 'ready', replica })
    const report = (): void => this.#send({ kind: 'load', load: duties.load() })
    report()
    setInterval(report, LOAD_MS).unref()
  }

  renamed(replica: string): void {
    this.#send({ kind: 'renamed', replica })
  }

  /** Whether a console shows what is recorded. */
  get isWatched(): boolean {
    return this.#isWatched
  }

  reportRecordings(rows: readonly object[], dropped: number): void {
    this.#send({ kind: 'recordings', rows, dropped })
  }

  /** Resolves when the main process has the lines, or will never have them. */
  writeAudit(lines: Buffer): Promise<void> {
    return new Promise(resolve => this.#send({ kind: 'audit', lines }, resolve))
  }

  #sendLines(): void {
    const lines = this.#lines
    this.#lines = []
    this.#send({ kind: 'log', lines })
  }

  #send(message: WorkerMessage, onSent: () => void = () => {}): void {
    if (process.connected) process.send?.(message, undefined, {}, onSent)
    else onSent()
  }

  #receive(message: MainMessage, socket: Socket | undefined): void {
    switch (message.kind) {
      case 'connection':
        return socket && this.#take(socket)
      case 'wake':
        for (const topic of message.topics) this.#onWake(topic)
        return
      case 'reload':
        return this.onReload(message.file)
      case 'order':
        return this.#duties?.onOrder(message.order)
      case 'ask':
        return this.#answer(message.id, message.question, message.about)
      case 'watch':
        this.#isWatched = message.isWatched
        return
      case 'stop':
        return this.#stop('stop')
    }
  }

  #take(socket: Socket): void {
    this.#send({ kind: 'taken' })
    socket.allowHalfOpen = true // as in an HTTP server
    if (this.#accept) this.#accept(socket)
    else socket.destroy()
  }

  #answer(id: number, question: string, about: unknown): void {
    Promise.resolve(this.#duties?.answer(question, about)).then(
      value => this.#send({ kind: 'answer', id, value }),
      () => this.#send({ kind: 'answer', id, value: undefined }),
    )
  }
}
