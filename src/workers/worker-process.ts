import { type ChildProcess, fork } from 'node:child_process'
import type { Socket } from 'node:net'
import { type MainMessage, WORKER_VARIABLE, type WorkerFacts, type WorkerLoad, type WorkerMessage } from './messages.ts'

/** What happens to a worker. */
export interface WorkerListener {
  onReady(): void
  onMessage(message: WorkerMessage): void
  /** Connections that the worker has never got, and never will. */
  onUntaken(sockets: readonly Socket[]): void
  /** Called once, when the process has ended. */
  onEnd(code: number | null, signal: string | null): void
}

const ASK_MS = 5000
const STUCK_MS = 1000 // for a connection to be taken: then others get the next ones

/** One worker as the main process sees it. */
export class WorkerProcess {
  readonly number: number
  readonly #child: ChildProcess
  readonly #listener: WorkerListener
  readonly #asked = new Map<number, (value: unknown) => void>()
  #lastId = 0
  #hasEnded = false
  #isReady = false
  replica: string | undefined // its name among the members of the store
  load: WorkerLoad | undefined
  silentTicks = 0 // since its last message
  #isWatched = false
  #untaken: Socket[] = []
  #given: Socket | undefined // on its way to the worker
  #givenAt = 0

  /** Starts the same program with the same arguments. */
  constructor(facts: WorkerFacts, listener: WorkerListener) {
    this.number = facts.number
    this.#listener = listener
    const [, program = '', ...args] = process.argv
    this.#child = fork(program, args, {
      env: { ...process.env, [WORKER_VARIABLE]: String(facts.number) },
      serialization: 'advanced', // carries bytes
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#child.on('message', message => this.#receive(message as WorkerMessage))
    this.#child.on('error', () => {}) // of a message to a process that has ended; `exit` follows
    this.#child.once('exit', (code, signal) => this.#end(code, signal))
    this.send({ kind: 'start', facts })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  get isReady(): boolean {
    return this.#isReady && !this.#hasEnded
  }

  /** Whether it takes the connections that it is given. */
  get isTaking(): boolean {
    return this.isReady && (!this.#given || Date.now() - this.#givenAt < STUCK_MS)
  }

  send(message: MainMessage): void {
    if (this.#child.connected) this.#child.send(message, () => {})
  }

  /** Tells the worker if that has changed. */
  setWatched(isWatched: boolean): void {
    if (isWatched !== this.#isWatched) this.send({ kind: 'watch', isWatched })
    this.#isWatched = isWatched
  }

  /** One connection after the other: Node.js would forget those that it has yet to send if the worker ends. */
  give(socket: Socket): void {
    this.#untaken.push(socket)
    if (!this.#given) this.#giveNext()
  }

  /** This process keeps the connection until the worker has it too: closed here only, it stays open there. */
  #giveNext(): void {
    const socket = this.#untaken.shift()
    this.#given = socket
    this.#givenAt = Date.now()
    const message: MainMessage = { kind: 'connection' }
    if (socket) this.#child.send(message, socket, { keepOpen: true }, error => error && this.#takeBack(socket))
  }

  /** The worker has ended, and has not got it: another one will. */
  #takeBack(socket: Socket): void {
    if (this.#given !== socket) return
    this.#given = undefined
    if (this.#hasEnded) this.#listener.onUntaken([socket])
    else this.#untaken.unshift(socket)
  }

  /** Undefined if the worker does not answer in time. */
  ask(question: string, about?: unknown): Promise<unknown> {
    const id = ++this.#lastId
    return new Promise(resolve => {
      const settle = (value: unknown): void => {
        clearTimeout(timer)
        this.#asked.delete(id)
        resolve(value)
      }
      const timer = setTimeout(() => settle(undefined), ASK_MS).unref()
      this.#asked.set(id, settle)
      this.send({ kind: 'ask', id, question, about })
    })
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #receive(message: WorkerMessage): void {
    this.silentTicks = 0
    switch (message.kind) {
      case 'ready':
        this.replica = message.replica
        this.#isReady = true
        return this.#listener.onReady()
      case 'taken':
        this.#given?.destroy()
        return this.#giveNext()
      case 'renamed':
        this.replica = message.replica
        return
      case 'load':
        this.load = message.load
        return
      case 'answer':
        return this.#asked.get(message.id)?.(message.value)
      default:
        return this.#listener.onMessage(message)
    }
  }

  #end(code: number | null, signal: string | null): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    for (const settle of [...this.#asked.values()]) settle(undefined)
    this.#given?.destroy() // the worker may have read from it
    this.#listener.onEnd(code, signal)
    this.#listener.onUntaken(this.#untaken.splice(0))
  }
}
