import { lstat, readlink } from 'node:fs/promises'
import { dirname, relative, sep } from 'node:path'
import { adaptEntry } from '../foreign-keys.ts'
import { isGateway } from '../own-entries.ts'
import { ConfigError } from '../problems.ts'
import { isRawObject } from '../server-entries.ts'
import type { McpClient, UserPlace } from './client-files.ts'
import { clientFile, openClient } from './edit-client.ts'
import type { LinkTransport } from './link-entry.ts'

/** An entry of a client's file that leads to the gateway. */
export interface LinkedEntry {
  readonly name: string
  readonly transport: LinkTransport
  readonly workspace: string
  readonly hasToken: boolean
}

/** What is in the file of a client. */
export interface ClientFileContent {
  readonly file: string
  readonly exists: boolean
  readonly problem?: string | undefined // why it cannot be read or changed
  readonly links: readonly LinkedEntry[]
  readonly others: readonly string[] // names of other entries
}

/** Reads the file of a client; never rejects. */
export const readClientState = async (
  client: McpClient,
  place: UserPlace,
  port: number | undefined,
): Promise<ClientFileContent> => {
  const file = await clientFile(client, place, false)
  const exists = (await lstat(file).catch(() => undefined)) !== undefined
  try {
    await refuseLinks(file, place.home)
    const { entries } = await openClient(client, file)
    const all = Object.entries(entries)
    const links = all.flatMap(([name, raw]) => (isGateway(raw, port) ? describe(name, raw) : []))
    return { file, exists, links, others: all.flatMap(([name, raw]) => (isGateway(raw, port) ? [] : name)) }
  } catch (error) {
    return { file, exists, problem: (error as Error).message, links: [], others: [] }
  }
}

const describe = (name: string, raw: unknown): LinkedEntry | [] => {
  const { entry } = adaptEntry(raw)
  if (!isRawObject(entry)) return []
  const { command, args, url, httpUrl, headers } = entry
  if (typeof command === 'string') {
    const words = Array.isArray(args) ? args.map(String) : []
    const at = words.indexOf('--workspace')
    return { name, transport: 'stdio', workspace: (at < 0 ? undefined : words[at + 1]) ?? 'default', hasToken: false }
  }
  const path = URL.parse(String(httpUrl ?? url))?.pathname ?? ''
  const workspace = /^\/mcp\/([^/]+)/.exec(path)?.[1]
  return {
    name,
    transport: 'http',
    workspace: workspace === undefined ? 'default' : decode(workspace),
    hasToken: isRawObject(headers) && Object.keys(headers).some(key => key.toLowerCase() === 'authorization'),
  }
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Throws a ConfigError if the file, or a folder between it and the home of the user, is a symbolic link: a request over the
 * network must not write to a place that only the link knows.
 */
export const refuseLinks = async (file: string, home: string): Promise<void> => {
  const inHome = relative(home, file)
  const isInHome = inHome !== '' && !inHome.startsWith(`..${sep}`)
  for (let path = file; ; path = dirname(path)) {
    const target = (await lstat(path).catch(() => undefined))?.isSymbolicLink() ? await readlink(path) : undefined
    if (target !== undefined)
      throw new ConfigError(`${path} is a symbolic link to ${target}; it is changed on the command line only`)
    if (!isInHome || dirname(path) === home || dirname(path) === path) return
  }
}
