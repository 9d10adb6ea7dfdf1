import { resolve } from 'node:path'
import { type Daemon, findDaemon } from '../config/daemon-file.ts'
import { type ConfigDifference, compareConfigs } from '../config/difference.ts'
import { findConfig } from '../config/find-config.ts'
import { loadConfig } from '../config/load.ts'
import type { Run } from './command.ts'
import { requestDaemon } from './daemon-client.ts'
import { describeDifference } from './difference-text.ts'
import {
  CONFIG_FLAG,
  DATA_FLAG,
  dataDirectoryOf,
  type Flags,
  flagHelp,
  JSON_FLAG,
  namedFile,
  print,
  printError,
  printJson,
  readLine,
  textOf,
  UsageError,
} from './usage.ts'

const FLAGS: Flags = {
  ...CONFIG_FLAG,
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
  const file = namedFile(flags, words[0])
  const from = textOf(flags, 'from')
  const data = dataDirectoryOf(flags)
  const daemon = from === undefined ? await findDaemon(data) : undefined
  if (from === undefined && !daemon)
    return printError(`no daemon runs on ${data}; start one, or compare with a file: --from FILE`)
  const found = file ?? (daemon?.config === undefined ? await findConfig({ env: process.env }) : undefined)
  const difference = daemon ? await askDaemon(daemon, found) : await compareFiles(from ?? '', found)
  return flags.json ? printJson(difference) : print(describeDifference(difference, 'Nothing would change.'))
}

const compareFiles = async (from: string, to: string | undefined): Promise<ConfigDifference> => {
  if (to === undefined) throw new UsageError('--from: expected a second file to compare with')
  const load = (file: string) => loadConfig({ file, env: process.env })
  return compareConfigs(await load(from), await load(to))
}

/** The daemon reads the file, because its environment variables apply and not those of this shell. */
const askDaemon = async (daemon: Daemon, file: string | undefined): Promise<ConfigDifference> => {
  const response = await requestDaemon(daemon, '/admin/plan', file === undefined ? {} : { file: resolve(file) })
  return (await response.json()) as ConfigDifference
}
