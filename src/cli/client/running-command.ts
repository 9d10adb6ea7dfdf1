import type { ServerConfig } from '../../config/snapshot.ts'
import { Abort } from '../../protocol/cancellation.ts'
import type { Frame, Question } from '../../protocol/exchange.ts'
import type { LogSeverity } from '../../protocol/methods.ts'
import { MODERN, type Revision } from '../../protocol/revisions.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { CommandContext } from '../command.ts'
import type { FrameHandlers } from './client-request.ts'
import { ServerConnection } from './connection.ts'
import { ClientError, type ClientState, EXIT, STATE_WORDS, toClientError } from './exit-codes.ts'
import type { TargetSource } from './sources.ts'
import type { ConnectOptions } from './target.ts'
import { styleOf, type Terminal } from './terminal.ts'

/** What the client offers the server. */
export interface ClientOffer {
  readonly capabilities: Json
  readonly logLevel?: LogSeverity | undefined
}

const DEFAULT_MS: Readonly<Record<ClientState, number>> = {
  connecting: 60_000, // a first start by npx or uvx may have to fetch the program
  handshake: 30_000,
  listing: 30_000,
  calling: 300_000,
  reading: 30_000,
  watching: 0,
}
const NO_LIMIT_MS = 24 * 60 * 60_000

interface ConnectRequest {
  readonly connect: ConnectOptions
  readonly handlers: Partial<FrameHandlers>
  readonly offer: ClientOffer
  readonly data: string
}

/** The connections of a command that runs, and its end. */
export class RunningCommand {
  readonly interrupted = new Abort()
  readonly #context: CommandContext
  readonly #terminal: Terminal
  readonly #timeoutMs: number | undefined
  readonly #connections: ServerConnection[] = []
  readonly #stopListening: () => void

  constructor(context: CommandContext, terminal: Terminal, timeoutMs: number | undefined) {
    this.#context = context
    this.#terminal = terminal
    this.#timeoutMs = timeoutMs
    this.#stopListening = terminal.onInterrupt(() => {
      if (this.interrupted.reason) process.exit(EXIT.cancelled) // a second Ctrl-C does not wait for servers
      this.interrupted.abort({ kind: 'cancelled', text: 'interrupted by the user' })
    })
  }

  async connect(source: TargetSource, { connect, handlers, offer, data }: ConnectRequest): Promise<ServerConnection> {
    const { openServer, openDaemon, version } = this.#context
    const caller = {
      workspace: 'default',
      principal: 'local',
      revision: connect.revision ?? MODERN,
      capabilities: offer.capabilities,
      info: Json.of({ name: 'dragoman', version }),
      logLevel: offer.logLevel,
      session: 'cli', // a legacy server gets a session for this command alone
      headers: new Map<string, string>(),
    }
    let connected: ServerConnection | undefined
    const early: Frame[] = [] // a server may ask for roots as soon as it is initialized
    const { connection: target } = source
    const openAs = (config: ServerConfig, revision: Revision | undefined) =>
      openServer(config, {
        caller: { ...caller, revision: revision ?? MODERN },
        timeoutMs: this.#timeoutMs || (this.#timeoutMs === 0 ? NO_LIMIT_MS : DEFAULT_MS.connecting),
        isRevisionForced: revision !== undefined,
        version,
        data,
        log: SILENT,
        sink: frame => (connected ? connected.outside(frame) : void early.push(frame)),
      })
    const open = async () => {
      if (target.kind === 'daemon')
        return openDaemon(target.daemon, target.workspace, offer.capabilities !== Json.empty)
      if (connect.revision === undefined) return openAs(target.config, undefined)
      const { openInRevision } = await import('./open-in-revision.ts')
      return openInRevision({ config: target.config, caller, label: source.label, open: openAs })
    }
    const peer = await this.#race(open())
    const connection = new ServerConnection(peer, {
      name: source.label,
      caller,
      signal: this.interrupted,
      timeoutMs: this.#timeouts(),
      handlers: { notice: () => {}, answer: refuseQuestion, ...handlers },
    })
    connected = connection
    this.#connections.push(connection)
    for (const frame of early) void connection.outside(frame)
    return connection
  }

  report(thrown: unknown, isJson: boolean): number {
    const error = thrown instanceof ClientError || !this.interrupted.reason ? thrown : INTERRUPTED
    if (!(error instanceof ClientError)) throw error
    const { output, error: stderr, env } = this.#terminal
    const { rpc, message } = error
    if (isJson && rpc) output.write(`${Json.of({ error: { code: rpc.code, message: rpc.message, data: rpc.data } })}\n`)
    stderr.write(`${styleOf(stderr, env).red('dragoman:')} ${message}\n`)
    return error.code
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#connections.map(connection => connection.close()))
    await flush(this.#terminal.output)
    this.#stopListening()
  }

  /** The user need not wait for a server that hangs. What is opened late is closed. */
  #race<T extends { close(): Promise<void> }>(opening: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const stop = this.interrupted.onAbort(() => {
        opening.then(peer => peer.close()).catch(() => {})
        reject(new ClientError(`cancelled ${STATE_WORDS.connecting}`, EXIT.cancelled))
      })
      opening.then(
        peer => {
          stop()
          resolve(peer)
        },
        (thrown: unknown) => {
          stop()
          try {
            reject(toClientError(thrown, 'connecting'))
          } catch (other) {
            reject(other)
          }
        },
      )
    })
  }

  #timeouts(): Readonly<Record<ClientState, number>> {
    const ms = this.#timeoutMs
    if (ms === undefined) return DEFAULT_MS
    return { connecting: ms, handshake: ms, listing: ms, calling: ms, reading: ms, watching: 0 }
  }
}

/** Resolves when the reader has everything, or has gone: a process that ends earlier would cut the output off. */
const flush = (output: Terminal['output']): Promise<void> =>
  new Promise(resolve => (output.destroyed || output.errored ? resolve() : output.write('', () => resolve())))

const INTERRUPTED = new ClientError('cancelled', EXIT.cancelled)

const refuseQuestion = ({ method }: Question): Promise<Json> =>
  Promise.reject(new ClientError(`the server asked for ${method}, which this command does not answer`, EXIT.protocol))
