import { WORKSPACE_NAME } from '../../config/workspace-schema.ts'

/** What a path of the MCP endpoint names. */
export interface McpPath {
  readonly workspace: string | undefined // undefined: the path names none
  readonly isSse: boolean // only opens SSE channels
}

const ALIAS = /^\/([^/]+)\/(mcp\/?|sse)$/

/**
 * `/mcp` names no workspace, `/mcp/x` (or `/mcp/x/`) and its alias `/x/mcp` name x, `/mcp/x/sse` and `/x/sse` open its SSE channels.
 * The alias is for clients that want the path to end in `/mcp`. Undefined for any other path.
 */
export const readMcpPath = (path: string): McpPath | undefined => {
  if (path === '/mcp' || path === '/mcp/') return { workspace: undefined, isSse: false }
  if (!path.startsWith('/mcp/')) return readAlias(path)
  const [segment = '', ...rest] = path.slice('/mcp/'.length).split('/')
  const end = rest.join('/')
  const isSse = end === 'sse'
  if (end !== '' && !isSse) return undefined
  const workspace = decode(segment)
  return workspace === undefined ? undefined : { workspace, isSse }
}

const readAlias = (path: string): McpPath | undefined => {
  const [, segment = '', end] = ALIAS.exec(path) ?? []
  const workspace = decode(segment)
  if (workspace === undefined || !WORKSPACE_NAME.test(workspace)) return undefined // such as `/.well-known/mcp`
  return { workspace, isSse: end === 'sse' }
}

const decode = (segment: string): string | undefined => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
