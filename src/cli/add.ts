import { dirname, relative, resolve, sep } from 'node:path'
import type { Run } from './command.ts'
import { applyChanges, EDIT_FLAGS, openForEdit } from './edit-config.ts'
import { readHeader, readOneServer, splitAtDashes } from './one-server.ts'
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
  openapi: { value: 'DOCUMENT', help: 'instead of a URL: the OpenAPI document of a REST API, as a file or a URL' },
  type: { value: 'TYPE', help: 'the transport of the URL: http or sse (default: detected)' },
  force: { help: 'replace a server of the same name' },
  ...EDIT_FLAGS,
}

const HELP = `Usage: dragoman add NAME <url> [flags]
       dragoman add NAME [flags] -- <command> [arguments]
       dragoman add NAME --openapi <file or url> [flags]

Adds a server to the configuration file. Comments and formatting of the file stay, and a backup is kept.

Examples:
  dragoman add github https://example.com/mcp --header 'Authorization: Bearer \${GITHUB_TOKEN}'
  dragoman add everything -- npx -y @modelcontextprotocol/server-everything
  dragoman add pets --openapi https://example.com/openapi.json --header 'X-API-Key: \${KEY}'

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
  const document = textOf(flags, 'openapi')
  const entryOf = document === undefined ? ofServer(word, command, flags) : ofApi(document, word ?? command?.[0], flags)
  const config = await openForEdit(flags)
  const entry = entryOf(config.file)
  const isThere = Object.hasOwn(config.servers, name)
  if (isThere && !flags.force)
    return printError(
      `${config.file} has a server ${JSON.stringify(name)} already; choose another name, or give --force`,
    )
  const done = `${isThere ? 'Replaced' : 'Added'} ${JSON.stringify(name)} in`
  return applyChanges(config, [{ path: config.pathOf(name), value: entry }], flags, done)
}

/** Makes an entry; paths in it are relative to the configuration file. */
type EntryOf = (file: string) => object

const ofServer = (word: string | undefined, command: readonly string[] | undefined, flags: FlagValues): EntryOf => {
  const one = readOneServer(word, command, textsOf(flags, 'header'))
  if (!one) throw new UsageError('expected a URL, or "--" and a command, or --openapi')
  const entry = { ...one.entry, ...('url' in one.entry ? ofRemote(flags) : ofProcess(flags)) }
  return () => entry
}

const ofApi = (document: string, word: string | undefined, flags: FlagValues): EntryOf => {
  if (word !== undefined) throw new UsageError('expected a URL, a command after "--", or --openapi, not two of them')
  if (flags.env || flags.cwd || flags.type) throw new UsageError('--env, --cwd and --type do not go with --openapi')
  const headers = textsOf(flags, 'header').map(readHeader)
  const more = headers.length > 0 ? { headers: Object.fromEntries(headers) } : {}
  if (!/^https?:/i.test(document)) return file => ({ openapi: pathFrom(file, document), ...more })
  if (!URL.canParse(document)) throw new UsageError(`--openapi: ${JSON.stringify(document)} is not a valid URL`)
  return () => ({ openapi: document, ...more })
}

/** The path of a document beside or below the configuration file is relative to it: both may be moved together. */
const pathFrom = (file: string, document: string): string => {
  const path = relative(dirname(resolve(file)), resolve(document))
  return path.split(sep)[0] === '..' ? resolve(document) : `./${path.replaceAll(sep, '/')}`
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
