import { Json } from '../../wire/json/json.ts'
import { DEFAULT_WORKSPACE } from '../http/request-url.ts'

interface ListedWorkspace {
  readonly name: string
  readonly servers: readonly string[]
}

/** The URLs of a workspace, relative to the index so that they are right behind a proxy's prefix, too. */
const urlsOf = (name: string) => {
  const segment = encodeURIComponent(name)
  return {
    mcp: name === DEFAULT_WORKSPACE ? 'mcp' : `mcp/${segment}`,
    sse: name === DEFAULT_WORKSPACE ? 'sse' : `mcp/${segment}/sse`,
    actions: `actions/${segment}/openapi.json`,
  }
}

const PAGES = { healthy: 'healthz', ready: 'readyz', metrics: 'metrics', actions: 'actions/openapi.json' } as const

/** The index of workspaces as JSON. */
export const indexJson = (version: string, workspaces: readonly ListedWorkspace[]): Json =>
  Json.of({
    name: 'dragoman',
    version,
    workspaces: workspaces.map(({ name, servers }) => ({ name, servers, ...urlsOf(name) })),
    ...PAGES,
  })
