import { Json } from '../../wire/json/json.ts'
import { html } from '../http/html.ts'
import { DEFAULT_WORKSPACE } from '../http/request-url.ts'

interface ListedWorkspace {
  readonly name: string
  readonly servers: readonly string[]
}

/** The URLs of a workspace, relative to the index page so that they are right behind a proxy's prefix, too. */
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

/** The index of workspaces as a page. */
export const indexHtml = (version: string, workspaces: readonly ListedWorkspace[]): string => {
  const rows = workspaces.map(({ name, servers }) => {
    const { mcp, sse, actions } = urlsOf(name)
    return html`<tr><td>${name}</td><td>${servers.join(', ')}</td><td><code>${mcp}</code></td><td><code>${sse}</code></td><td>${link(actions)}</td></tr>`
  })
  const [first, ...others] = Object.values(PAGES)
  return `${html`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>dragoman</title>
<style>body{font:16px/1.5 system-ui;margin:2rem;max-width:60rem}td,th{padding:.2rem 1rem .2rem 0;text-align:left}</style>
<h1>dragoman ${version}</h1>
<table><tr><th>workspace</th><th>servers</th><th>MCP</th><th>SSE</th><th>REST</th></tr>
${rows}
</table>
<p>${link(first ?? '')}${others.map(path => html` · ${link(path)}`)}</p>
</html>
`}`
}

const link = (path: string) => html`<a href="${path}">${path}</a>`
