import { suggest } from '../problems.ts'
import { MCP_CLIENTS, type McpClient } from './client-files.ts'

export type LinkTransport = 'http' | 'stdio'

/** How a client shall be connected. */
export interface LinkWish {
  readonly workspace: string
  readonly transport?: string | undefined // http or stdio; undefined: what fits
  readonly token?: string | undefined // with http
}

/** The gateway that a client is connected to. */
export interface LinkTarget {
  readonly origin: string
  readonly isLasting: boolean // it runs until it is stopped, on a port that stays the same
  readonly needsToken: boolean
  readonly stdio: readonly [command: string, args: readonly string[]] // how a client starts `dragoman stdio`
}

/** Says which part of a wish is wrong, and why. */
export class LinkWishError extends Error {
  readonly field: 'client' | keyof LinkWish

  constructor(field: LinkWishError['field'], message: string) {
    super(message)
    this.name = 'LinkWishError'
    this.field = field
  }
}

/** The client of that name; a LinkWishError names the ones there are. */
export const findKnownClient = (name: string): McpClient => {
  const client = Object.hasOwn(MCP_CLIENTS, name) ? MCP_CLIENTS[name] : undefined
  if (client) return client
  const shown = JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name)
  throw new LinkWishError(
    'client',
    `${shown} is not a known client; ${suggest(name.slice(0, 60), Object.keys(MCP_CLIENTS))}`,
  )
}

/** The name of the entry for a workspace in the file of a client. */
export const entryNameOf = (workspace: string): string =>
  workspace === 'default' ? 'dragoman' : `dragoman-${workspace}`

/** The address at which a gateway serves a workspace. */
const workspaceUrl = (origin: string, workspace: string): string =>
  workspace === 'default' ? `${origin}/mcp` : `${origin}/mcp/${encodeURIComponent(workspace)}`

/** The transport that fits a client, unless one is asked for: http to a gateway that stays and needs no token. */
export const transportFor = (client: McpClient, wish: LinkWish, target: LinkTarget): LinkTransport => {
  const { transport, token } = wish
  if (transport !== undefined && transport !== 'http' && transport !== 'stdio')
    throw new LinkWishError('transport', 'expected http or stdio')
  if (transport === 'http' && !client.httpEntry)
    throw new LinkWishError('transport', `${client.title} supports only stdio`)
  const isMissing = target.needsToken && token === undefined
  if (transport === 'http' && isMissing)
    throw new LinkWishError('token', 'the gateway needs a token; give one, or use stdio')
  const isHttp =
    transport === 'http' || token !== undefined || (transport === undefined && target.isLasting && !isMissing)
  if (isHttp && client.httpEntry && transport !== 'stdio') return 'http'
  if (token !== undefined) throw new LinkWishError('token', 'a token goes with http; stdio needs none')
  return 'stdio'
}

/** The entry of a client for a workspace. */
export const linkEntry = (client: McpClient, wish: LinkWish, target: LinkTarget): object => {
  const isHttp = transportFor(client, wish, target) === 'http'
  if (!isHttp || !client.httpEntry) return client.stdioEntry(...target.stdio)
  const { workspace, token } = wish
  return client.httpEntry(
    workspaceUrl(target.origin, workspace),
    token === undefined ? {} : { Authorization: `Bearer ${token}` },
  )
}
