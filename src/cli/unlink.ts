import { currentPlace, MCP_CLIENTS } from '../config/clients/client-files.ts'
import { clientFile } from '../config/clients/edit-client.ts'
import { planChange } from '../config/clients/link-client.ts'
import { findDaemon } from '../config/daemon-file.ts'
import type { Run } from './command.ts'
import { clientOf, nameOfEntry, portOf } from './link.ts'
import { DATA_FLAG, dataDirectoryOf, type Flags, flagHelp, print, printError, readLine } from './usage.ts'

const FLAGS: Flags = {
  workspace: { value: 'NAME', help: 'the workspace that the client was linked to (default: default)' },
  name: { value: 'NAME', help: 'the name of the entry (default: dragoman, or dragoman-WORKSPACE)' },
  project: { help: "change the client's file of the current directory, not the one of the user" },
  force: { help: 'remove the entry also if it is another server' },
  'dry-run': { help: 'show what would be removed, change nothing' },
  ...DATA_FLAG,
}

const HELP = `Usage: dragoman unlink CLIENT [flags]

Removes the entry that "dragoman link" wrote. Everything else in the client's file stays, and a backup is kept.

Clients: ${Object.keys(MCP_CLIENTS).join(', ')}

${flagHelp(FLAGS)}
`

/** Removes the connection of a client to this gateway. */
export const run: Run = async args => {
  const { flags, words } = readLine(args, FLAGS, 1)
  if (flags.help) return print(HELP)
  const client = clientOf(words[0])
  const name = nameOfEntry(flags)
  const file = await clientFile(client, currentPlace(), flags.project === true)
  const port = portOf(await findDaemon(dataDirectoryOf(flags)))
  const { kind, save } = await planChange({ client, file, name, entry: undefined, port })
  if (kind === 'missing') return printError(`${file} has no entry ${JSON.stringify(name)}`)
  if (kind === 'other' && !flags.force)
    return printError(`${JSON.stringify(name)} in ${file} is another server; give --force to remove it`)
  if (flags['dry-run']) return print(`${JSON.stringify(name)} would be removed from ${file}.\n`)
  const backup = await save()
  return print(`Unlinked ${client.title}: ${file}\nBackup: ${backup}\nRestart ${client.title} if it runs.\n`)
}
