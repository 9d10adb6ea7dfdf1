import { ConfigError, nearest } from '../config/problems.ts'
import { readVersion } from '../std/package.ts'
import type { Programs, Run } from './command.ts'
import { DaemonError } from './daemon-client.ts'
import { columns, print, printError, UsageError } from './usage.ts'

interface Command {
  readonly summary: string
  readonly load: () => Promise<{ run: Run }>
}

/** Every command; its module is loaded when it runs. */
const COMMANDS: Readonly<Record<string, Command>> = {
  serve: { summary: 'run the gateway in the foreground', load: () => import('./serve.ts') },
  stdio: { summary: 'serve a workspace of the daemon over stdin and stdout', load: () => import('./stdio.ts') },
  check: { summary: 'check a configuration and connect to each of its servers once', load: () => import('./check.ts') },
  doctor: { summary: 'examine one server: transports, revisions, deviations', load: () => import('./doctor.ts') },
  plan: { summary: 'show what another configuration would change', load: () => import('./plan.ts') },
  add: { summary: 'add a server to the configuration file', load: () => import('./add.ts') },
  remove: { summary: 'remove a server from the configuration file', load: () => import('./remove.ts') },
  import: { summary: 'add the servers of other MCP clients', load: () => import('./import.ts') },
  link: { summary: 'connect an MCP client to this gateway', load: () => import('./link.ts') },
  unlink: { summary: 'remove that connection', load: () => import('./unlink.ts') },
  login: { summary: 'log in to a server that wants OAuth', load: () => import('./login.ts') },
  logout: { summary: 'end a login at a server', load: () => import('./logout.ts') },
  status: { summary: 'show the servers, sessions and calls of the running daemon', load: () => import('./status.ts') },
  console: { summary: 'open the console of the running daemon in a browser', load: () => import('./console.ts') },
  approve: {
    summary: 'show and approve tools that have changed, of pinned servers',
    load: () => import('./approve.ts'),
  },
  logs: { summary: 'show the log of the running daemon and what its servers print', load: () => import('./logs.ts') },
  reload: { summary: 'make the running daemon read its configuration again', load: () => import('./reload.ts') },
  restart: { summary: 'restart the running daemon', load: () => import('./restart.ts') },
  stop: { summary: 'stop the running daemon', load: () => import('./stop.ts') },
  memory: { summary: 'add to, search and maintain the agent memory', load: () => import('./memory/memory.ts') },
  tools: { summary: 'list the tools of all servers, or of one', load: () => import('./tools.ts') },
  prompts: { summary: 'list prompts', load: () => import('./prompts.ts') },
  resources: { summary: 'list resources and their templates', load: () => import('./resources.ts') },
  describe: { summary: 'show the signature of a tool and an example call', load: () => import('./describe.ts') },
  search: { summary: 'find tools, prompts and resources by words', load: () => import('./search.ts') },
  call: { summary: 'call a tool', load: () => import('./call.ts') },
  read: { summary: 'read a resource', load: () => import('./read.ts') },
  prompt: { summary: 'fill in a prompt', load: () => import('./prompt.ts') },
  complete: { summary: 'complete an argument of a prompt or resource template', load: () => import('./complete.ts') },
  watch: { summary: 'print changes of a resource or of lists', load: () => import('./watch.ts') },
  ping: { summary: 'measure how long servers take to answer', load: () => import('./ping.ts') },
  replay: { summary: 'play back a recording, as a client or as a server', load: () => import('./replay.ts') },
  tasks: { summary: 'list, follow and cancel calls that run as tasks', load: () => import('./tasks.ts') },
  token: { summary: 'create, list and revoke tokens', load: () => import('./token.ts') },
  completion: {
    summary: 'print a script that completes commands in your shell',
    load: () => import('./completion.ts'),
  },
}

const help = (version: string): string => `dragoman ${version}: one URL for all your MCP servers, for every client

Usage: dragoman <command> [flags]

${columns(Object.entries(COMMANDS).map(([name, { summary }]) => [name, summary]))}

Run "dragoman <command> --help" for the flags of a command, "dragoman --version" for the version.
`

const INVALID_USE = 2

/** Runs one command line and returns the exit code: 0 success, 1 failure, 2 invalid arguments or configuration. */
export const run = async (args: readonly string[], programs: Programs): Promise<number> => {
  const version = readVersion()
  const [name, ...rest] = args
  try {
    const isHelp = name === undefined || name === '--help' || name === '-h' || name === 'help'
    if (isHelp && rest[0] === undefined) return print(help(version))
    if (name === '--version' || name === '-v') return print(`${version}\n`)
    const [asked = '', ...flags] = isHelp ? [...rest, '--help'] : [name, ...rest]
    const { run: command } = await commandOf(asked).load()
    return await command(flags, { version, ...programs })
  } catch (error) {
    return report(error, name)
  }
}

const commandOf = (name: string): Command => {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command) return command
  const meant = nearest(name, Object.keys(COMMANDS))
  throw new UsageError(`${JSON.stringify(name)} is not a command${meant ? `; did you mean "${meant}"?` : ''}`)
}

const report = (error: unknown, name = ''): number => {
  if (error instanceof ConfigError) return printError(error.message, INVALID_USE)
  if (error instanceof DaemonError) return printError(error.message)
  if (!(error instanceof UsageError)) return printError(listenError(error) ?? fileError(error) ?? stackOf(error))
  const command = Object.hasOwn(COMMANDS, name) ? ` ${name}` : ''
  return printError(`${error.message}\nTry "dragoman${command} --help".`, INVALID_USE)
}

const stackOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error))

/** Why the gateway cannot listen; undefined for any other error. */
const listenError = (error: unknown): string | undefined => {
  const { code = '', syscall = '', address, hostname, port } = error as NodeJS.ErrnoException & Record<string, unknown>
  if (syscall !== 'listen' && syscall !== 'getaddrinfo') return undefined
  return LISTEN_ERRORS[code]?.(String(address ?? hostname), String(port))
}

/** The system's message about a file; undefined for any other error. */
const fileError = (error: unknown): string | undefined => {
  const { code, path, message } = error as NodeJS.ErrnoException
  return FILE_ERRORS.has(code ?? '') && path !== undefined ? message.replace(/^\w+: /, '') : undefined
}

const FILE_ERRORS: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'EMFILE', 'EIO'])

const LISTEN_ERRORS: Readonly<Record<string, (host: string, port: string) => string>> = {
  EADDRINUSE: (host, port) =>
    `port ${port} on ${host} is in use; stop the other program or choose another port with --port (0 takes any free one)`,
  EACCES: (host, port) => `not allowed to listen on port ${port} of ${host}; choose another one with --port`,
  EADDRNOTAVAIL: host => `this machine has no address ${host} to listen on; choose another one with --host`,
  ENOTFOUND: host => `there is no host ${host} to listen on; choose another one with --host`,
}
