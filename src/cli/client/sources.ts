import { announcedDaemon, type Daemon } from '../../config/daemon-file.ts'
import { nearest, quoteAll } from '../../config/problems.ts'
import type { ServerConfig } from '../../config/snapshot.ts'
import { UsageError } from '../usage.ts'
import { chooseWorkspace, fetchWorkspaces } from './daemon-workspaces.ts'
import { type ConnectOptions, processServer, remoteServer, type Target, withConnectOptions } from './target.ts'

/** One connection that a command may open. */
export interface TargetSource {
  readonly label: string // for messages
  readonly servers: readonly string[] // behind it; empty for a URL or a command, whose items need no prefix
  readonly connection:
    | { readonly kind: 'daemon'; readonly daemon: Daemon; readonly workspace: string }
    | { readonly kind: 'server'; readonly config: ServerConfig }
}

export interface TargetOptions {
  readonly target: Target
  readonly connect: ConnectOptions
  readonly data: string // the data directory, where the daemon announces itself
  readonly config: string | undefined // the file of --config
  readonly findConfig: () => Promise<string | undefined> // the file of --config, else the one that is found
  readonly workspace: string | undefined
}

/** The connections of a command, and what its first word means there. */
export interface TargetSources extends ServerWord {
  readonly all: readonly TargetSource[]
}

/** A word that may begin with the name of a server: `server`, or `server/item`. */
interface ServerWord {
  readonly server: string | undefined // undefined: every server
  readonly item: string | undefined
}

/** Finds the connections for a target; opens none. */
export const findSources = async (word: string | undefined, options: TargetOptions): Promise<TargetSources> => {
  const { target, connect } = options
  switch (target.kind) {
    case 'url':
      return direct(target.url, { ...remoteServer(target.url, connect), name: target.url }, word)
    case 'command': {
      const name = [target.command.split(/[\\/]/).at(-1), ...target.args].join(' ').slice(0, 60)
      return direct(name, { ...processServer(target.command, target.args, connect), name }, word)
    }
    case 'configured': {
      const daemon = options.config === undefined ? await announcedDaemon(options.data) : undefined
      const found = daemon && (await daemonSources(daemon, word, options))
      return found ?? configuredSources(word, options)
    }
  }
}

type Named<T> = T extends unknown ? Omit<T, 'disabled'> : never

const direct = (label: string, config: Named<ServerConfig>, item: string | undefined): TargetSources => {
  const connection = { kind: 'server', config: { ...config, disabled: false } } as const
  return { all: [{ label, servers: [], connection }], server: undefined, item }
}

const daemonSources = async (
  daemon: Daemon,
  word: string | undefined,
  { workspace, connect }: TargetOptions,
): Promise<TargetSources | undefined> => {
  const workspaces = await fetchWorkspaces(daemon)
  if (!workspaces) return undefined
  const chosen = chooseWorkspace(workspaces, workspace)
  const meant = splitByServer(word, chosen.servers)
  // A server with a workspace of its own is used there: only that server is asked.
  const isOnly = ({ servers }: { servers: readonly string[] }) => servers.length === 1 && servers[0] === meant.server
  const own = workspace === undefined && meant.server !== undefined ? workspaces.find(isOnly) : undefined
  const { name, servers } = own ?? chosen
  const hasHeaders = Object.keys(connect.headers).length > 0
  const isPlain = connect.revision === undefined && connect.transport === undefined && !hasHeaders
  const connection = isPlain
    ? ({ kind: 'daemon', daemon, workspace: name } as const)
    : ({ kind: 'server', config: daemonServer(daemon, name, connect) } as const)
  return { all: [{ label: `the daemon at ${daemon.origin}`, servers, connection }], ...meant }
}

/** The daemon as any other server, for a client of a certain revision or transport. */
const daemonServer = ({ origin, token }: Daemon, workspace: string, options: ConnectOptions): ServerConfig => {
  const url = `${origin}/mcp/${encodeURIComponent(workspace)}${options.transport === 'sse' ? '/sse' : ''}`
  const headers = { authorization: `Bearer ${token}`, ...options.headers }
  return { name: 'the daemon', disabled: false, ...remoteServer(url, { ...options, headers }) }
}

const configuredSources = async (
  word: string | undefined,
  { findConfig, workspace, connect }: TargetOptions,
): Promise<TargetSources> => {
  const { loadConfig } = await import('../../config/load.ts')
  const file = await findConfig()
  const { servers, workspaces } = await loadConfig({ file, env: process.env })
  const members = workspace === undefined ? undefined : chooseWorkspace([...workspaces.values()], workspace).servers
  const used = [...servers.values()].filter(({ name, disabled }) => !disabled && (members?.includes(name) ?? true))
  const meant = splitByServer(
    word,
    used.map(({ name }) => name),
  )
  const all = used
    .filter(({ name }) => meant.server === undefined || name === meant.server)
    .map(config => ({
      label: config.name,
      servers: [config.name],
      connection: { kind: 'server', config: withConnectOptions(config, connect) } as const,
    }))
  if (all.length === 0) throw new UsageError(`${file ?? 'the configuration'} has no server that is enabled`)
  return { all, ...meant }
}

/** Names of servers may contain slashes: the longest one that fits is meant. */
const splitByServer = (word: string | undefined, servers: readonly string[]): ServerWord => {
  if (word === undefined) return { server: undefined, item: undefined }
  const fitting = servers.filter(name => word === name || word.startsWith(`${name}/`))
  const server = fitting.sort((a, b) => b.length - a.length)[0]
  if (server === undefined) return { server, item: word }
  return { server, item: word.length > server.length + 1 ? word.slice(server.length + 1) : undefined }
}

/** Ends the command: no server has that name. */
export const unknownServer = (name: string, sources: readonly TargetSource[]): UsageError => {
  const servers = sources.flatMap(({ servers: behind }) => behind)
  const meant = nearest(name, servers)
  const known = servers.length > 0 ? `there are ${quoteAll(servers)}` : 'expected a URL, or a command after --'
  const hint = meant === undefined ? known : `did you mean ${JSON.stringify(meant)}?`
  return new UsageError(`there is no server ${JSON.stringify(name)}; ${hint}`)
}
