import { isDeepStrictEqual } from 'node:util'
import { currentPlace, MCP_CLIENTS } from '../config/clients/client-files.ts'
import { type ClientServer, readClients } from '../config/clients/read-clients.ts'
import { findDaemon } from '../config/daemon-file.ts'
import type { RawObject } from '../config/server-entries.ts'
import type { Run } from './command.ts'
import { applyChanges, EDIT_FLAGS, openForEdit } from './edit-config.ts'
import { clientOf, portOf } from './link.ts'
import { dataDirectoryOf, type Flags, flagHelp, print, printError, readLine, table } from './usage.ts'

const FLAGS: Flags = {
  project: { help: 'also from the files of the current directory, such as .mcp.json and .cursor/mcp.json' },
  ...EDIT_FLAGS,
}

const HELP = `Usage: dragoman import [CLIENT ...] [flags]

Finds the servers of other MCP clients and adds them to the configuration file. Servers that are there already are skipped; a
different server of the same name gets the name of its client. The files of the clients are not changed, secrets are not printed.

Clients: ${Object.keys(MCP_CLIENTS).join(', ')}

${flagHelp(FLAGS)}
`

/** What happens to one server that was found. */
interface ImportStep {
  readonly server: ClientServer
  readonly name?: string // absent: it is not added
  readonly note: string
}

/** Adds the servers of other clients to the configuration file. */
export const run: Run = async args => {
  const { flags, words } = readLine(args, FLAGS)
  if (flags.help) return print(HELP)
  for (const word of words) clientOf(word)
  const clients = words.length > 0 ? words : Object.keys(MCP_CLIENTS)
  const port = portOf(await findDaemon(dataDirectoryOf(flags)))
  const includeProject = flags.project === true
  const { servers, files, problems } = await readClients(clients, currentPlace(), { includeProject, port })
  for (const problem of problems) printError(problem)
  if (servers.length === 0) {
    const where = files.length === 0 ? 'no file of a client was found' : `${files.join(', ')} name no other server`
    return printError(`there is nothing to import: ${where}`)
  }
  const config = await openForEdit(flags)
  const steps = planImport(servers, config.servers)
  print(table([['CLIENT', 'SERVER', 'IMPORT'], ...steps.map(({ server, note }) => [server.client, server.name, note])]))
  const changes = steps.flatMap(({ name, server }) =>
    name === undefined ? [] : [{ path: config.pathOf(name), value: server.entry }],
  )
  if (changes.length === 0) return print('\nNothing to add.\n')
  const count = `${changes.length} ${changes.length === 1 ? 'server' : 'servers'}`
  return applyChanges(config, changes, flags, `\nAdded ${count} to`)
}

/** Decides which servers are added, and under which names. */
export const planImport = (found: readonly ClientServer[], existing: RawObject): ImportStep[] => {
  const taken = new Map(Object.entries(existing))
  return found.map(server => {
    const { entry, lost } = server
    const known = [...taken].find(([, other]) => isDeepStrictEqual(other, entry))
    if (known) return { server, note: `skipped: is there as ${JSON.stringify(known[0])}` }
    const name = freeName(server, taken)
    taken.set(name, entry)
    const added = name === server.name ? 'added' : `added as ${JSON.stringify(name)}`
    return { server, name, note: [added, ...lost].join('; ') }
  })
}

const freeName = ({ name, client }: ClientServer, taken: ReadonlyMap<string, unknown>): string => {
  const candidates = [name, `${name}-${client}`]
  for (let count = 2; ; count++) {
    const free = candidates.find(candidate => !taken.has(candidate))
    if (free !== undefined) return free
    candidates.push(`${name}-${client}-${count}`)
  }
}
