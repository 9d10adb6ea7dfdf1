import { nameOfCommand, nameOfUrl } from '../config/server-names.ts'
import { UsageError } from './usage.ts'

/** A server that is named on the command line: its entry as a configuration file has it, and a name for it. */
export interface OneServer {
  readonly name: string
  readonly entry:
    | { readonly url: string; readonly headers?: object }
    | { readonly command: string; readonly args: string[] }
}

/** Separates the words after the first `--`, which are a command, from the others. */
export const splitAtDashes = (
  args: readonly string[],
): { readonly own: readonly string[]; readonly command: readonly string[] | undefined } => {
  const at = args.indexOf('--')
  return at < 0 ? { own: args, command: undefined } : { own: args.slice(0, at), command: args.slice(at + 1) }
}

/** The server of `<url>` or `-- command…`; undefined if neither is given. */
export const readOneServer = (
  word: string | undefined,
  command: readonly string[] | undefined,
  headers: readonly string[],
): OneServer | undefined => {
  if (word !== undefined && command !== undefined)
    throw new UsageError('expected a URL or a command after "--", not both')
  if (headers.length > 0 && word === undefined) throw new UsageError('--header goes with a URL')
  if (command !== undefined) {
    const [program, ...args] = command
    if (program === undefined) throw new UsageError('expected a command after "--"')
    return { name: nameOfCommand(command), entry: { command: program, args } }
  }
  if (word === undefined) return undefined
  const url = URL.parse(word)
  if (!url || !/^https?:$/.test(url.protocol)) throw new UsageError(notAUrl(word))
  const given = Object.fromEntries(headers.map(readHeader))
  return { name: nameOfUrl(url), entry: { url: word, ...(headers.length > 0 && { headers: given }) } }
}

const notAUrl = (word: string): string =>
  /\.jsonc?$|\.toml$/i.test(word)
    ? `"${word}" looks like a configuration file; name it with --config: dragoman serve --config ${word}`
    : `Unexpected argument '${word}'; expected a URL like https://example.com/mcp, or "--" and a command`

/** Reads `Name: value` of --header, as it is written. */
export const readHeader = (text: string): [string, string] => {
  const at = text.indexOf(':')
  if (at > 0) return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
  throw new UsageError(`--header: expected "Name: value", found ${JSON.stringify(text)}`)
}

/** Variables of a shell that say nothing to a server, or that every program gets anyway. */
const OF_THE_SHELL =
  /^(PWD|OLDPWD|SHLVL|_|PATH|HOME|USER|LOGNAME|SHELL|TERM.*|COLORTERM|LANG|LC_.*|HOSTNAME|EDITOR|npm_.*|DRAGOMAN_.*)$/

/** The configuration of one server. A program gets the variables of the shell, as if it were started there. */
export const configOfOne = ({ name, entry }: OneServer): object => ({
  mcpServers: { [name]: entry },
  passEnv: 'command' in entry ? Object.keys(process.env).filter(variable => !OF_THE_SHELL.test(variable)) : [],
})
