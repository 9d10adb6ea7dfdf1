import { ConfigError, nearest } from '../config/problems.ts'
import { readVersion } from '../std/version.ts'
import type { Building, Run } from './command.ts'
import { columns, UsageError } from './usage.ts'

interface Command {
  readonly summary: string
  readonly load: () => Promise<{ run: Run }>
}

/** Every command; loaded when it is asked for. */
const COMMANDS: Readonly<Record<string, Command>> = {
  serve: { summary: 'run the gateway in the foreground', load: () => import('./serve.ts') },
  stdio: { summary: 'serve a workspace of the daemon over stdin and stdout', load: () => import('./stdio.ts') },
  check: { summary: 'check a configuration and connect to everything in it once', load: () => import('./check.ts') },
  plan: { summary: 'say what another configuration would change', load: () => import('./plan.ts') },
  memory: { summary: 'add to, search and look after the memory of agents', load: () => import('./memory/memory.ts') },
  token: { summary: 'create, list and revoke the tokens callers come in with', load: () => import('./token.ts') },
}

const help = (version: string): string => `dragoman ${version}: any MCP client, any MCP server, one URL

Usage: dragoman <command> [flags]

${columns(Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary]))}

dragoman <command> --help says more; dragoman --version prints the version.
`

const WRONG_USE = 2

/** Runs one command line and returns the exit code: 0 good, 1 it failed, 2 it was called wrongly. */
export const run = async (args: readonly string[], building: Building): Promise<number> => {
  const version = readVersion()
  const [name, ...rest] = args
  try {
    const isHelp = name === undefined || name === '--help' || name === '-h' || name === 'help'
    if (isHelp && rest[0] === undefined) return print(help(version))
    if (name === '--version' || name === '-v') return print(`${version}\n`)
    const [asked = '', ...flags] = isHelp ? [...rest, '--help'] : [name, ...rest]
    const { run: command } = await commandOf(asked).load()
    return await command(flags, { version, ...building })
  } catch (error) {
    return complain(error, name)
  }
}

const print = (text: string): number => {
  process.stdout.write(text)
  return 0
}

const commandOf = (name: string): Command => {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command) return command
  const meant = nearest(name, Object.keys(COMMANDS))
  throw new UsageError(`${JSON.stringify(name)} is not a command${meant ? `; did you mean "${meant}"?` : ''}`)
}

const complain = (error: unknown, name = ''): number => {
  if (error instanceof ConfigError) return complaint(error.message, WRONG_USE)
  if (!(error instanceof UsageError)) return complaint(listenFault(error) ?? fileFault(error) ?? bugReport(error), 1)
  const command = Object.hasOwn(COMMANDS, name) ? ` ${name}` : ''
  return complaint(`${error.message}\nTry "dragoman${command} --help".`, WRONG_USE)
}

const complaint = (message: string, code: number): number => {
  process.stderr.write(`dragoman: ${message}\n`)
  return code
}

const bugReport = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error))

/** Why the gateway cannot listen, in words; undefined for any other error. */
const listenFault = (error: unknown): string | undefined => {
  const { code = '', syscall = '', address, hostname, port } = error as NodeJS.ErrnoException & Record<string, unknown>
  if (syscall !== 'listen' && syscall !== 'getaddrinfo') return undefined
  return LISTEN_FAULTS[code]?.(String(address ?? hostname), String(port))
}

/** What the system refused to do with a file, in its own words; undefined for any other error. */
const fileFault = (error: unknown): string | undefined => {
  const { code, path, message } = error as NodeJS.ErrnoException
  return FILE_FAULTS.has(code ?? '') && path !== undefined ? message.replace(/^\w+: /, '') : undefined
}

const FILE_FAULTS: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'EMFILE', 'EIO'])

const LISTEN_FAULTS: Readonly<Record<string, (host: string, port: string) => string>> = {
  EADDRINUSE: (host, port) =>
    `port ${port} on ${host} is in use; stop the other program or choose another port with --port (0 takes any free one)`,
  EACCES: (host, port) => `not allowed to listen on port ${port} of ${host}; choose another one with --port`,
  EADDRNOTAVAIL: host => `this machine has no address ${host} to listen on; choose another one with --host`,
  ENOTFOUND: host => `there is no host ${host} to listen on; choose another one with --host`,
}
