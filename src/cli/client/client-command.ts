import type { Abort } from '../../protocol/cancellation.ts'
import { Json } from '../../wire/json/json.ts'
import type { Run } from '../command.ts'
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
import type { FrameHandlers } from './client-request.ts'
import type { ServerConnection } from './connection.ts'
import { EXIT } from './exit-codes.ts'
import { type ClientOffer, RunningCommand } from './running-command.ts'
import { findSources, type TargetSource, type TargetSources } from './sources.ts'
import { CONNECT_FLAGS, readConnectOptions, splitCommand, takeUrl } from './target.ts'
import { processTerminal, type Terminal } from './terminal.ts'

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

const NO_OFFER: ClientOffer = { capabilities: Json.empty }

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
