import type { Run } from './command.ts'
import { applyChanges, EDIT_FLAGS, openForEdit } from './edit-config.ts'
import { readOneServer, splitAtDashes } from './one-server.ts'
import {
  type Flags,
  type FlagValues,
  flagHelp,
  print,
  printError,
  readLine,
  textOf,
  textsOf,
  UsageError,
} from './usage.ts'

const FLAGS: Flags = {
  env: {
    value: 'NAME=VALUE',
    many: true,
    help: 'a variable of the command, may be repeated; ${NAME} is filled in later',
  },
  cwd: { value: 'DIR', help: 'the folder to start the command in' },
  header: { value: 'HEADER', many: true, help: 'a header like "Name: value" to send to the URL, may be repeated' },
  type: { value: 'TYPE', help: 'the transport of the URL: http or sse (default: detected)' },
  force: { help: 'replace a server of the same name' },
  ...EDIT_FLAGS,
}

const HELP = `Usage: dragoman add NAME <url> [flags]
       dragoman add NAME [flags] -- <command> [arguments]

Adds a server to the configuration file. Comments and formatting of the file stay, and a backup is kept.

Examples:
  dragoman add github https://example.com/mcp --header 'Authorization: Bearer \${GITHUB_TOKEN}'
  dragoman add everything -- npx -y @modelcontextprotocol/server-everything

${flagHelp(FLAGS)}
`

/** Adds a server to the configuration file. */
export const run: Run = async args => {
  const { own, command } = splitAtDashes(args)
  const { flags, words } = readLine(own, FLAGS, 2)
  if (flags.help) return print(HELP)
  const [name, word] = words
  if (name === undefined || name.trim() === '') throw new UsageError('expected a name for the server')
  if (/^https?:/.test(name)) throw new UsageError(`expected a name before the URL: dragoman add NAME ${name}`)
  const one = readOneServer(word, command, textsOf(flags, 'header'))
  if (!one) throw new UsageError('expected a URL, or "--" and a command')
  const entry = { ...one.entry, ...('url' in one.entry ? ofRemote(flags) : ofProcess(flags)) }
  const config = await openForEdit(flags)
  const isThere = Object.hasOwn(config.servers, name)
  if (isThere && !flags.force)
    return printError(
      `${config.file} has a server ${JSON.stringify(name)} already; choose another name, or give --force`,
    )
  const done = `${isThere ? 'Replaced' : 'Added'} ${JSON.stringify(name)} in`
  return applyChanges(config, [{ path: config.pathOf(name), value: entry }], flags, done)
}

const ofRemote = (flags: FlagValues): object => {
  const type = textOf(flags, 'type')
  if (type !== undefined && type !== 'http' && type !== 'sse') throw new UsageError('--type: expected http or sse')
  if (flags.env || flags.cwd) throw new UsageError('--env and --cwd go with a command')
  return type === undefined ? {} : { type }
}

const ofProcess = (flags: FlagValues): object => {
  if (flags.type) throw new UsageError('--type goes with a URL')
  const cwd = textOf(flags, 'cwd')
  const env = Object.fromEntries(textsOf(flags, 'env').map(readVariable))
  return { ...(Object.keys(env).length > 0 && { env }), ...(cwd !== undefined && { cwd }) }
}

const readVariable = (text: string): [string, string] => {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new UsageError(`--env: expected NAME=VALUE, found ${JSON.stringify(text)}`)
}
