import { relative } from 'node:path'
import { currentPlace, MCP_CLIENTS, type McpClient } from '../config/clients/client-files.ts'
import { clientFile, entryText } from '../config/clients/edit-client.ts'
import { planChange } from '../config/clients/link-client.ts'
import {
  entryNameOf,
  findKnownClient,
  type LinkTarget,
  LinkWishError,
  linkEntry,
} from '../config/clients/link-entry.ts'
import { stdioCommand } from '../config/clients/stdio-command.ts'
import { type Daemon, findDaemon } from '../config/daemon-file.ts'
import { findConfig, userConfigFiles } from '../config/find-config.ts'
import { suggest } from '../config/problems.ts'
import { DEFAULT_LISTEN } from '../config/snapshot.ts'
import type { GatewayStatus } from '../protocol/status.ts'
import type { Run } from './command.ts'
import { requestDaemon } from './daemon-client.ts'
import {
  DATA_FLAG,
  dataDirectoryOf,
  type Flags,
  type FlagValues,
  flagHelp,
  print,
  printError,
  readLine,
  textOf,
  UsageError,
} from './usage.ts'

const FLAGS: Flags = {
  workspace: { value: 'NAME', help: 'the workspace to connect to (default: default)' },
  name: { value: 'NAME', help: 'the name of the entry (default: dragoman, or dragoman-WORKSPACE)' },
  transport: { value: 'NAME', help: 'http or stdio (default: http while a daemon runs on a fixed port, else stdio)' },
  token: { value: 'TOKEN', help: 'with http: the token that the client sends' },
  project: { help: "write the client's file of the current directory, not the one of the user" },
  config: { value: 'FILE', help: 'with stdio: the configuration of the daemon that is started' },
  force: { help: 'replace an entry of the same name that is another server' },
  'dry-run': { help: 'show the entry, change nothing' },
  ...DATA_FLAG,
}

const HELP = `Usage: dragoman link CLIENT [flags]

Writes the entry that connects an MCP client to a workspace of this gateway. Everything else in the client's file stays, and a backup
is kept. With stdio, the client starts "dragoman stdio", which starts the gateway if none runs and needs no token.

Clients: ${Object.keys(MCP_CLIENTS).join(', ')}

${flagHelp(FLAGS)}
`

/** Connects a client to a workspace. */
export const run: Run = async args => {
  const { flags, words } = readLine(args, FLAGS, 1)
  if (flags.help) return print(HELP)
  const client = clientOf(words[0])
  const workspace = textOf(flags, 'workspace') ?? 'default'
  const name = nameOfEntry(flags)
  const daemon = await findDaemon(dataDirectoryOf(flags))
  await checkWorkspace(daemon, workspace)
  const entry = await entryOf(client, workspace, daemon, flags)
  const file = await clientFile(client, currentPlace(), flags.project === true)
  const { kind, save } = await planChange({ client, file, name, entry, port: portOf(daemon) })
  if (kind === 'same') return print(`${client.title} is linked already: ${file}\n`)
  if (kind === 'other' && !flags.force)
    return printError(`${file} has another server ${JSON.stringify(name)}; choose a --name, or give --force`)
  const shown = entryText(client, name, entry)
    .trimEnd()
    .replace(/Bearer [^"]+/, 'Bearer …')
  if (flags['dry-run']) return print(`${file} would get:\n\n${shown}\n`)
  const backup = await save()
  const kept = backup === undefined ? '' : `Backup: ${backup}\n`
  return print(
    `Linked ${client.title} to the workspace ${JSON.stringify(workspace)}: ${file}\n\n${shown}\n\n${kept}Restart ${client.title} if it runs.\n`,
  )
}

const WISH_FLAGS = { client: '', workspace: '--workspace: ', transport: '--transport: ', token: '--token: ' } as const

/** What `run` returns; a wish that cannot be fulfilled becomes a UsageError that names its flag. */
const withFlagNames = <T>(run: () => T): T => {
  try {
    return run()
  } catch (error) {
    throw error instanceof LinkWishError ? new UsageError(`${WISH_FLAGS[error.field]}${error.message}`) : error
  }
}

/** The client of that name; a UsageError names the ones there are. */
export const clientOf = (word: string | undefined): McpClient => {
  if (word === undefined) throw new UsageError(`expected a client: ${Object.keys(MCP_CLIENTS).join(', ')}`)
  return withFlagNames(() => findKnownClient(word))
}

/** The name of the entry in the client's file. */
export const nameOfEntry = (flags: FlagValues): string =>
  textOf(flags, 'name') ?? entryNameOf(textOf(flags, 'workspace') ?? 'default')

export const portOf = (daemon: Daemon | undefined): number =>
  daemon ? Number(new URL(daemon.origin).port) : DEFAULT_LISTEN.port

const checkWorkspace = async (daemon: Daemon | undefined, workspace: string): Promise<void> => {
  if (!daemon) return
  const { workspaces } = (await (await requestDaemon(daemon, '/admin/status')).json()) as GatewayStatus
  const names = workspaces.map(({ name }) => name)
  if (!names.includes(workspace))
    throw new UsageError(
      `--workspace: the daemon has no workspace ${JSON.stringify(workspace)}; ${suggest(workspace, names)}`,
    )
}

const entryOf = async (
  client: McpClient,
  workspace: string,
  daemon: Daemon | undefined,
  flags: FlagValues,
): Promise<object> => {
  const wish = { workspace, transport: textOf(flags, 'transport'), token: textOf(flags, 'token') }
  const needsToken = daemon !== undefined && wish.token === undefined && (await requiresToken(daemon))
  const hasData = textOf(flags, 'data') ?? process.env.DRAGOMAN_DATA
  const target: LinkTarget = {
    origin: daemon?.origin ?? `http://${DEFAULT_LISTEN.host}:${DEFAULT_LISTEN.port}`,
    isLasting: daemon?.isLasting === true,
    needsToken,
    stdio: stdioCommand({
      workspace,
      config: textOf(flags, 'config') ?? (await projectConfig()),
      data: hasData ? dataDirectoryOf(flags) : undefined,
    }),
  }
  return withFlagNames(() => linkEntry(client, wish, target))
}

const requiresToken = async ({ origin }: Daemon): Promise<boolean> => (await fetch(`${origin}/`)).status === 401

/** The file of the current project, which `dragoman stdio` does not find by itself. */
const projectConfig = async (): Promise<string | undefined> => {
  const search = { env: process.env }
  const found = await findConfig(search)
  const isOwn = found !== undefined && relative(process.cwd(), found) === 'dragoman.json'
  return isOwn && !userConfigFiles(search).includes(found) ? found : undefined
}
