import type { ConfigDifference } from '../config/difference.ts'
import type { Run } from './command.ts'
import { daemonOf, requestDaemon } from './daemon-client.ts'
import { describeDifference } from './difference-text.ts'
import { DATA_FLAG, type Flags, flagHelp, JSON_FLAG, print, printJson, readFlags } from './usage.ts'

const FLAGS: Flags = { ...DATA_FLAG, ...JSON_FLAG }

const HELP = `Usage: dragoman reload [flags]

Makes the running daemon read its configuration file again, and shows what changed. The daemon does so by itself when the file
changes, but not when a variable or a file named by \${file:PATH} does.

${flagHelp(FLAGS)}
`

/** Makes the daemon read its configuration again. */
export const run: Run = async args => {
  const flags = readFlags(args, FLAGS)
  if (flags.help) return print(HELP)
  const response = await requestDaemon(await daemonOf(flags), '/admin/reload', {})
  const difference = (await response.json()) as ConfigDifference
  return flags.json ? printJson(difference) : print(describeDifference(difference, 'Nothing has changed.'))
}
