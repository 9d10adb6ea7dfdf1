import { resolve } from 'node:path'
import { type Daemon, findDaemon } from '../config/daemon-file.ts'
import { type Change, type ConfigDifference, compareConfigs, type Detail, hasNoChanges } from '../config/difference.ts'
import { findConfig } from '../config/find-config.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problems.ts'
import type { Run } from './command.ts'
import {
  DATA_FLAG,
  dataDirectoryOf,
  type Flags,
  flagHelp,
  JSON_FLAG,
  print,
  printError,
  printJson,
  readLine,
  textOf,
  UsageError,
} from './usage.ts'

const FLAGS: Flags = {
  from: { value: 'FILE', help: 'compare with another file instead of the running daemon' },
  ...DATA_FLAG,
  ...JSON_FLAG,
}

const HELP = `Usage: dragoman plan [FILE] [flags]

Shows what would change if the running daemon loaded FILE, or how FILE differs from another file. Default: the daemon's
own file; if it has none, the file that "dragoman serve" would find. Changes nothing and prints no secrets.

${flagHelp(FLAGS)}
`

/** Shows how one configuration differs from another. */
export const run: Run = async args => {
  const { flags, words } = readLine(args, FLAGS, 1)
  if (flags.help) return print(HELP)
  const [file] = words
  const from = textOf(flags, 'from')
  const data = dataDirectoryOf(flags)
  const daemon = from === undefined ? await findDaemon(data) : undefined
  if (from === undefined && !daemon)
    return printError(`no daemon runs on ${data}; start one, or compare with a file: --from FILE`)
  const found = file ?? (daemon?.config === undefined ? await findConfig({ env: process.env }) : undefined)
  const difference = daemon ? await askDaemon(daemon, found) : await compareFiles(from ?? '', found)
  return flags.json ? printJson(difference) : print(describe(difference))
}

const compareFiles = async (from: string, to: string | undefined): Promise<ConfigDifference> => {
  if (to === undefined) throw new UsageError('--from: expected a second file to compare with')
  const load = (file: string) => loadConfig({ file, env: process.env })
  return compareConfigs(await load(from), await load(to))
}

/** The daemon reads the file, because its environment variables apply and not those of this shell. */
const askDaemon = async ({ origin, token }: Daemon, file: string | undefined): Promise<ConfigDifference> => {
  const response = await fetch(`${origin}/admin/plan`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(file === undefined ? {} : { file: resolve(file) }),
  })
  const body = (await response.json()) as ConfigDifference & { error?: { message?: string } }
  if (response.ok) return body
  throw new ConfigError(body.error?.message ?? `the daemon at ${origin} answered ${response.status}`)
}

const SIGNS: Readonly<Record<Change['kind'], string>> = { added: '+', removed: '-', changed: '~' }

const describe = (difference: ConfigDifference): string => {
  if (hasNoChanges(difference)) return 'Nothing would change.\n'
  const { servers, workspaces, policies, settings } = difference
  return [
    ...changeLines('server', servers),
    ...changeLines('workspace', workspaces),
    ...changeLines('policy', policies),
    ...changeLines('needs a restart:', settings),
    '',
  ].join('\n')
}

const changeLines = (what: string, changes: readonly Change[]): string[] =>
  changes.flatMap(({ name, kind, details }) => [`${SIGNS[kind]} ${what} ${name}`, ...details.map(detailLine)])

const detailLine = ({ at, from, to }: Detail): string => {
  if (from === undefined && to === undefined) return `    ${at} differs`
  if (from === undefined) return `    ${at}: ${to}`
  return `    ${at}: ${from} -> ${to ?? '(absent)'}`
}
