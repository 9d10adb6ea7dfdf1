import { join } from 'node:path'
import { parseEdited } from '../edit/json-edit.ts'
import { readForEdit } from '../edit/safe-write.ts'
import { parseToml } from '../edit/toml-edit.ts'
import { isGateway } from '../own-entries.ts'
import { isRawObject, type RawObject } from '../server-entries.ts'
import { MCP_CLIENTS, type UserPlace } from './client-files.ts'
import { type ConvertedEntry, convertEntry } from './convert-entry.ts'

/** A server that a client has in its configuration. */
export interface ClientServer extends ConvertedEntry {
  readonly client: string
  readonly file: string
  readonly name: string
}

/** What was found in the files of clients. */
export interface ClientServers {
  readonly servers: readonly ClientServer[]
  readonly files: readonly string[] // that exist
  readonly problems: readonly string[] // files that cannot be read
}

interface ReadOptions {
  readonly includeProject: boolean
  readonly port: number // of the gateway: entries that lead to it are left out
}

/** Reads the servers of clients from the files of the user, and from those of the current project if asked. */
export const readClients = async (
  clients: readonly string[],
  place: UserPlace,
  { includeProject, port }: ReadOptions,
): Promise<ClientServers> => {
  const found: { servers: ClientServer[]; files: string[]; problems: string[] } = {
    servers: [],
    files: [],
    problems: [],
  }
  for (const client of clients)
    for (const { file, folder } of filesOf(client, place, includeProject)) {
      try {
        const text = await readForEdit(file)
        if (text === undefined) continue
        found.files.push(file)
        found.servers.push(...serversIn(client, file, text, { folder, current: place.folder, port }))
      } catch (error) {
        found.problems.push((error as Error).message)
      }
    }
  return found
}

const filesOf = (client: string, place: UserPlace, includeProject: boolean) => {
  const { userFiles, projectFile } = MCP_CLIENTS[client] ?? { userFiles: () => [] }
  const ofUser = userFiles(place).map(file => ({ file, folder: undefined }))
  if (!includeProject || projectFile === undefined) return ofUser
  return [...ofUser, { file: join(place.folder, projectFile), folder: place.folder }]
}

interface FileContext {
  readonly port: number
  readonly folder: string | undefined // of the project the file belongs to
  readonly current: string
}

const serversIn = (
  client: string,
  file: string,
  text: string,
  { folder, current, port }: FileContext,
): ClientServer[] => {
  const { key = '', format } = MCP_CLIENTS[client] ?? {}
  const root = (format === 'toml' ? parseToml(file, text) : parseEdited(file, text)) as RawObject
  const groups = [root[key], ...(client === 'claude-code' ? [projectServers(root, current)] : [])]
  return groups.flatMap(group =>
    Object.entries(isRawObject(group) ? group : {}).flatMap(([name, raw]) => {
      const converted = isGateway(raw, port) ? undefined : convertEntry(raw, { client, folder })
      return converted ? { ...converted, client, file, name } : []
    }),
  )
}

/** Claude Code keeps servers of one folder ("local scope") in the file of the user. */
const projectServers = (root: RawObject, folder: string): unknown => {
  const project = isRawObject(root.projects) ? root.projects[folder] : undefined
  return isRawObject(project) ? project.mcpServers : undefined
}
