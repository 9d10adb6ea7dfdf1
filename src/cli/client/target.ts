import { DEFAULT_PROCESS_LIMITS, type ProcessServer, type RemoteServer } from '../../config/snapshot.ts'
import { isModern, isRevision, REVISIONS, type Revision } from '../../protocol/revisions.ts'
import { readHeaderLine } from '../../std/header-text.ts'
import { type Flags, type FlagValues, textOf, textsOf, UsageError } from '../usage.ts'

/** Where a command finds its servers. */
export type Target =
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'command'; readonly command: string; readonly args: readonly string[] }
  | { readonly kind: 'configured' } // the daemon, or the configuration

/** How to connect, besides the address. */
export interface ConnectOptions {
  readonly revision: Revision | undefined // undefined: the newest one the server speaks
  readonly transport: 'http' | 'sse' | 'stdio' | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number | undefined
}

export const CONNECT_FLAGS: Flags = {
  workspace: { value: 'NAME', help: 'the workspace of the daemon (default: default)' },
  config: { value: 'FILE', help: 'use the servers of this file, not the running daemon' },
  header: { value: 'TEXT', many: true, help: 'send this HTTP header, as in "Name: value" (repeatable)' },
  token: { value: 'TOKEN', help: 'send "Authorization: Bearer TOKEN"' },
  revision: { value: 'DATE', help: `speak this revision of MCP (${REVISIONS.join(', ')})` },
  transport: { value: 'NAME', help: 'use this transport only: http, sse or stdio' },
  timeout: {
    value: 'SECONDS',
    help: 'longest silence of the server (default: 30, while a tool runs 300; 0: no limit)',
  },
}

/** Splits a command line at `--`: what follows is the command of a server. */
export const splitCommand = (
  args: readonly string[],
): { readonly line: readonly string[]; readonly target: Target } => {
  const at = args.indexOf('--')
  if (at < 0) return { line: args, target: { kind: 'configured' } }
  const [command, ...rest] = args.slice(at + 1)
  if (command === undefined || command === '') throw new UsageError('expected the command of a server after --')
  return { line: args.slice(0, at), target: { kind: 'command', command, args: rest } }
}

const isUrl = (word: string | undefined): word is string => word !== undefined && /^https?:\/\//i.test(word)

/** Takes a URL from the front of the words; `least` words must remain. */
export const takeUrl = (
  words: readonly string[],
  target: Target,
  least: number,
): { readonly words: readonly string[]; readonly target: Target } => {
  const [first, ...rest] = words
  if (target.kind !== 'configured' || !isUrl(first) || rest.length < least) return { words, target }
  const parsed = URL.parse(first)
  if (!parsed) throw new UsageError(`${JSON.stringify(first)} is not a valid URL`)
  if (parsed.username || parsed.password)
    throw new UsageError('credentials do not belong in a URL; use --token or --header')
  return { words: rest, target: { kind: 'url', url: first } }
}

const TRANSPORTS = ['http', 'sse', 'stdio'] as const

export const readConnectOptions = (flags: FlagValues, target: Target): ConnectOptions => {
  const revision = textOf(flags, 'revision')
  if (revision !== undefined && !isRevision(revision))
    throw new UsageError(`--revision: expected one of ${REVISIONS.join(', ')}`)
  const given = textOf(flags, 'transport')
  const transport = TRANSPORTS.find(name => name === given)
  if (given !== undefined && transport === undefined)
    throw new UsageError(`--transport: expected one of ${TRANSPORTS.join(', ')}`)
  if (transport === 'stdio' && target.kind === 'url') throw new UsageError('--transport stdio needs a command after --')
  if (transport !== undefined && transport !== 'stdio' && target.kind === 'command')
    throw new UsageError(`--transport ${transport} needs a URL; a command is used over stdio`)
  if (transport === 'sse' && revision !== undefined && isModern(revision))
    throw new UsageError(`--transport sse is older than revision ${revision}`)
  return { revision, transport, headers: readHeaders(flags), timeoutMs: readTimeout(flags) }
}

/** The headers that --token and --header ask for. */
export const readHeaders = (flags: FlagValues): Record<string, string> => {
  const token = textOf(flags, 'token')
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  for (const text of textsOf(flags, 'header')) {
    const header = readHeaderLine(text)
    if (!header) throw new UsageError(`--header: expected "Name: value", got ${JSON.stringify(text)}`)
    headers[header[0]] = header[1]
  }
  return headers
}

const readTimeout = (flags: FlagValues): number | undefined => {
  const text = textOf(flags, 'timeout')
  if (text === undefined) return undefined
  const seconds = Number(text)
  if (text.trim() === '' || !(seconds >= 0 && seconds <= 86_400))
    throw new UsageError('--timeout: expected seconds from 0 to 86400')
  return seconds * 1000
}

const EXIT_MS = 500 // for a program to exit after its stdin was closed: the user waits for it

const eraOf = (revision: Revision | undefined): RemoteServer['era'] =>
  revision === undefined ? 'auto' : isModern(revision) ? 'modern' : 'legacy'

/** A server at a URL, as the configuration would describe it. */
export const remoteServer = (url: string, { revision, transport, headers }: ConnectOptions): RemoteServer => ({
  kind: 'remote',
  url,
  type: transport === 'http' || transport === 'sse' ? transport : 'auto',
  headers,
  era: transport === 'sse' ? 'legacy' : eraOf(revision),
  timeoutMs: 0, // the command has its own
  allowCrossOriginRedirect: false,
})

/** A server that is started by a command line; it gets the environment of the shell. */
export const processServer = (
  command: string,
  args: readonly string[],
  { revision }: ConnectOptions,
): ProcessServer => ({
  kind: 'process',
  command,
  args,
  env: {},
  inheritsAll: true,
  cwd: undefined,
  era: eraOf(revision),
  timeoutMs: 0,
  limits: { ...DEFAULT_PROCESS_LIMITS, exitMs: EXIT_MS },
})

/** A configured server with what the command line says about the connection. */
export const withConnectOptions = <S extends { readonly kind: string }>(server: S, options: ConnectOptions): S => {
  const era = options.revision === undefined ? {} : { era: eraOf(options.revision) }
  if (server.kind === 'process') return { ...server, ...era, timeoutMs: 0 }
  if (server.kind !== 'remote') return server
  const { headers: configured = {} } = server as { headers?: Readonly<Record<string, string>> }
  const type = options.transport === 'http' || options.transport === 'sse' ? { type: options.transport } : {}
  return { ...server, ...era, ...type, headers: { ...configured, ...options.headers }, timeoutMs: 0 }
}
