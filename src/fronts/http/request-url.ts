import type { IncomingMessage } from 'node:http'
import { WORKSPACE_NAME } from '../../config/workspace-schema.ts'
import { type RpcError, rpcError } from '../../protocol/errors.ts'

/**
 * The workspace a request is for: the one its path names, else the one of `?workspace=`, else undefined.
 * False if it names two different ones: neither may be served in place of the other.
 */
export const requestedWorkspace = (
  request: Pick<IncomingMessage, 'url'>,
  inPath: string | undefined,
): string | undefined | false => {
  if (!request.url?.includes('?')) return inPath
  const inQuery = readQuery(request).getAll('workspace')
  const named = inPath ?? inQuery[0]
  return inQuery.every(name => name === named) ? named : false
}

/** The workspace of a URL that names none. */
export const DEFAULT_WORKSPACE = 'default'

/** The error (400) for a URL whose path and query name different workspaces. */
export const TWO_WORKSPACES: RpcError = rpcError(
  'invalidRequest',
  'Bad Request: the URL names two different workspaces; name one, in the path or as ?workspace=NAME',
)

export const readQuery = ({ url = '' }: Pick<IncomingMessage, 'url'>): URLSearchParams => {
  const at = url.indexOf('?')
  return new URLSearchParams(at < 0 ? '' : url.slice(at + 1))
}

/** What a path of the MCP endpoint names. */
interface McpPath {
  readonly workspace: string | undefined // undefined: the path names none
  readonly isSse: boolean // only opens SSE channels
}

/** The workspace at a path with its query, for any dialect; undefined if MCP is not served there. */
export const workspaceOfTarget = (target: string): string | undefined => {
  const path = target.split('?', 1)[0] ?? ''
  const found = path === '/sse' ? { workspace: undefined } : readMcpPath(path)
  const workspace = found && requestedWorkspace({ url: target }, found.workspace)
  return found && workspace !== false ? (workspace ?? DEFAULT_WORKSPACE) : undefined
}

const UNNAMED: McpPath = { workspace: undefined, isSse: false }
const ALIAS = /^\/([^/]+)\/(mcp\/?|sse)$/

/**
 * `/mcp` names no workspace, `/mcp/x` (or `/mcp/x/`) and its alias `/x/mcp` name x, `/mcp/x/sse` and `/x/sse` open its SSE channels.
 * The alias is for clients that need a path ending in `/mcp`. Undefined for any other path.
 */
export const readMcpPath = (path: string): McpPath | undefined => {
  if (path === '/mcp' || path === '/mcp/') return UNNAMED
  if (!path.startsWith('/mcp/')) return readAlias(path)
  const [segment = '', ...rest] = path.slice('/mcp/'.length).split('/')
  const end = rest.join('/')
  const isSse = end === 'sse'
  if (end !== '' && !isSse) return undefined
  const workspace = decodeSegment(segment)
  return workspace === undefined ? undefined : { workspace, isSse }
}

const readAlias = (path: string): McpPath | undefined => {
  const [, segment = '', end] = ALIAS.exec(path) ?? []
  const workspace = decodeSegment(segment)
  if (workspace === undefined || !WORKSPACE_NAME.test(workspace)) return undefined // such as `/.well-known/mcp`
  return { workspace, isSse: end === 'sse' }
}

/** What a path of the REST endpoint names. */
export type ActionPath =
  | {
      readonly kind: 'tool'
      readonly workspace: string | undefined // undefined: the path names none
      readonly server: string | undefined
      readonly tool: string
    }
  | { readonly kind: 'openapi'; readonly workspace: string | undefined } // undefined: of every workspace

/** A task that a REST caller has started. */
export interface TaskPath {
  readonly workspace: string | undefined // undefined: the path names none
  readonly id: string
}

const ACTIONS = '/actions/'
const TASKS = 'tasks'
const OPENAPI = 'openapi.json'

/** Parses a path of the REST endpoint; a slash within a name is written %2F. Undefined if it has no such form. */
export const readActionPath = (path: string): ActionPath | undefined => {
  const segments = path.slice(ACTIONS.length).split('/').map(decodeSegment)
  const [first, second, third] = segments
  if (!first || segments.length > 3 || segments.some(segment => !segment)) return undefined
  if (segments.length === 1 && first === OPENAPI) return { kind: 'openapi', workspace: undefined }
  if (segments.length === 2 && second === OPENAPI) return { kind: 'openapi', workspace: first }
  if (third) return { kind: 'tool', workspace: first, server: second, tool: third }
  if (second) return { kind: 'tool', workspace: first, server: undefined, tool: second }
  return { kind: 'tool', workspace: undefined, server: undefined, tool: first }
}

/** Parses the path of a task, which is read, changed and deleted; a POST to the same path calls a tool. */
export const readTaskPath = (path: string): TaskPath | undefined => {
  const segments = path.slice(ACTIONS.length).split('/').map(decodeSegment)
  const [id, kind, workspace, ...rest] = segments.reverse()
  return id && id !== OPENAPI && kind === TASKS && rest.length === 0 ? { workspace, id } : undefined
}

export const taskPath = (workspace: string, id: string): string =>
  `${ACTIONS}${workspace === DEFAULT_WORKSPACE ? '' : `${encodeURIComponent(workspace)}/`}${TASKS}/${encodeURIComponent(id)}`

/** The path of a tool in the OpenAPI document. */
export const actionPath = (workspace: string, tool: string): string =>
  `${ACTIONS}${encodeURIComponent(workspace)}/${encodeURIComponent(tool)}`

const decodeSegment = (segment: string): string | undefined => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return undefined
  }
}
