import { suggest } from '../config/problems.ts'
import type { Run } from './command.ts'
import { applyChanges, EDIT_FLAGS, openForEdit } from './edit-config.ts'
import { flagHelp, print, printError, readLine, UsageError } from './usage.ts'

const HELP = `Usage: dragoman remove NAME [flags]

Removes a server from the configuration file. Comments and formatting of the file stay, and a backup is kept.

${flagHelp(EDIT_FLAGS)}
`

/** Removes a server from the configuration file. */
export const run: Run = async args => {
  const { flags, words } = readLine(args, EDIT_FLAGS, 1)
  if (flags.help) return print(HELP)
  const [name] = words
  if (name === undefined) throw new UsageError('expected the name of a server')
  const config = await openForEdit(flags)
  if (!Object.hasOwn(config.servers, name)) {
    const hint = suggest(name, Object.keys(config.servers), 'it names none')
    return printError(`${config.file} has no server ${JSON.stringify(name)}; ${hint}`)
  }
  const change = { path: config.pathOf(name), value: undefined }
  return applyChanges(config, [change], flags, `Removed ${JSON.stringify(name)} from`)
}
