import { Abort } from '../../protocol/cancellation.ts'
import type { Question } from '../../protocol/exchange.ts'
import type { LogSeverity } from '../../protocol/methods.ts'
import { MODERN } from '../../protocol/revisions.ts'
import { SILENT } from '../../telemetry/log.ts'
import { Json } from '../../wire/json/json.ts'
import type { CommandContext, Run } from '../command.ts'
import {
  columns,
  configFileOf,
  DATA_FLAG,
  dataDirectoryOf,
  type Flags,
  type FlagValues,
  flagHelp,
  JSON_FLAG,
  readLine,
  textOf,
  UsageError,
} from '../usage.ts'
import { type FrameHandlers, ServerConnection } from './connection.ts'
import { ClientError, type ClientState, EXIT, STATE_WORDS, toClientError } from './exit-codes.ts'
import { findSources, type TargetSource, type TargetSources } from './sources.ts'
import { CONNECT_FLAGS, readConnectOptions, splitCommand, takeUrl } from './target.ts'
import { processTerminal, styleOf, type Terminal } from './terminal.ts'

/** A client command: its help, and what it does. */
export interface ClientCommand {
  readonly usage: readonly string[]
  readonly about: string
  readonly examples: readonly (readonly [command: string, what: string])[]
  readonly flags?: Flags
  readonly words: readonly [least: number, most: number] // besides a target
  readonly hasServerWord: boolean // the first word may begin with the name of a server
  readonly run: (client: Client) => Promise<number>
}

/** What a client command works with. */
export interface Client {
  readonly flags: FlagValues
  readonly words: readonly string[] // after the first one, if that may name a server
  readonly terminal: Terminal
  readonly sources: TargetSources
  readonly isJson: boolean
  readonly interrupted: Abort
  /** Opens a connection, which is closed when the command ends. Rejects with ClientError. */
  connect(source: TargetSource, handlers?: Partial<FrameHandlers>, offer?: ClientOffer): Promise<ServerConnection>
  write(text: string): void
  /** Writes a line to stderr. */
  note(text: string): void
}

/** What the client offers the server. */
export interface ClientOffer {
  readonly capabilities: Json
  readonly logLevel?: LogSeverity | undefined
}

const NO_OFFER: ClientOffer = { capabilities: Json.empty }
const DEFAULT_MS: Readonly<Record<ClientState, number>> = {
  connecting: 60_000, // a first start by npx or uvx may have to fetch the program
  handshake: 30_000,
  listing: 30_000,
  calling: 300_000,
  reading: 30_000,
  watching: 0,
}
const NO_LIMIT_MS = 24 * 60 * 60_000

/** Makes a command of a description: reads its line, connects, reports errors with their exit codes. */
export const createClientCommand =
  (command: ClientCommand): Run =>
  async (args, context) => {
    const terminal = context.terminal ?? processTerminal()
    const split = splitCommand(args)
    const { flags, words: given } = readLine(split.line, {
      ...command.flags,
      ...CONNECT_FLAGS,
      ...DATA_FLAG,
      ...JSON_FLAG,
    })
    if (flags.help) {
      terminal.output.write(helpOf(command))
      return EXIT.ok
    }
    const [least, most] = command.words
    const { words, target } = takeUrl(given, split.target, least)
    if (words.length < least) throw new UsageError(`expected dragoman ${command.usage[0]}`)
    if (words.length > most) throw new UsageError(`Unexpected argument '${words[most]}'`)
    const connect = readConnectOptions(flags, target)
    const [first, ...rest] = words
    const running = new RunningCommand(context, terminal, connect.timeoutMs)
    try {
      const sources = await findSources(command.hasServerWord ? first : undefined, {
        target,
        connect,
        data: dataDirectoryOf(flags),
        config: textOf(flags, 'config'),
        findConfig: () => configFileOf(flags),
        workspace: textOf(flags, 'workspace'),
      })
      return await command.run({
        flags,
        words: command.hasServerWord ? rest : words,
        terminal,
        sources,
        isJson: flags.json === true,
        interrupted: running.interrupted,
        connect: (source, handlers = {}, offer = NO_OFFER) =>
          running.connect(source, { connect, handlers, offer, data: dataDirectoryOf(flags) }),
        write: text => void terminal.output.write(text),
        note: text => void terminal.error.write(`${text}\n`),
      })
    } catch (thrown) {
      return running.report(thrown, flags.json === true)
    } finally {
      await running.close()
    }
  }

interface ConnectRequest {
  readonly connect: ReturnType<typeof readConnectOptions>
  readonly handlers: Partial<FrameHandlers>
  readonly offer: ClientOffer
  readonly data: string
}

/** The connections of a command that runs, and its end. */
class RunningCommand {
  readonly interrupted = new Abort()
  readonly #context: CommandContext
  readonly #terminal: Terminal
  readonly #timeoutMs: number | undefined
  readonly #sessions: ServerConnection[] = []
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
    let session: ServerConnection | undefined
    const { connection } = source
    const open = async () =>
      connection.kind === 'daemon'
        ? openDaemon(connection.daemon, connection.workspace)
        : openServer(connection.config, {
            caller,
            timeoutMs: this.#timeoutMs || (this.#timeoutMs === 0 ? NO_LIMIT_MS : DEFAULT_MS.connecting),
            isRevisionForced: connect.revision !== undefined,
            version,
            data,
            log: SILENT,
            sink: frame => session?.outside(frame),
          })
    const peer = await this.#race(open())
    session = new ServerConnection(peer, {
      name: source.label,
      caller,
      signal: this.interrupted,
      timeoutMs: this.#timeouts(),
      handlers: { notice: () => {}, answer: refuseQuestion, ...handlers },
    })
    this.#sessions.push(session)
    return session
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
    await Promise.allSettled(this.#sessions.map(session => session.close()))
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

const INTERRUPTED = new ClientError('cancelled', EXIT.cancelled)

const refuseQuestion = ({ method }: Question): Promise<Json> =>
  Promise.reject(new ClientError(`the server asked for ${method}, which this command does not answer`, EXIT.protocol))

const EXIT_HELP = `Exit codes: 0 success, 1 the tool reported an error, 2 invalid arguments, 3 protocol error, 4 unreachable or no answer
in time, 5 credentials rejected, 130 cancelled.`

const helpOf = ({ usage, about, examples, flags }: ClientCommand): string => `Usage: ${usage
  .map(line => `dragoman ${line}`)
  .join('\n       ')}

${about}

Without a target, the running daemon is used, else the servers of the configuration. A target is a URL, the name of a
server, or a command line after "--".

Examples:
${columns(examples).replaceAll(/^/gm, '  ')}

${flagHelp({ ...flags, ...CONNECT_FLAGS, ...DATA_FLAG, ...JSON_FLAG })}

${EXIT_HELP}
`
