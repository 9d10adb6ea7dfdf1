import { Json } from '../../wire/json/json.ts'
import { DEFAULT_WORKSPACE } from '../http/choose-workspace.ts'

/** A workspace as the index shows it. */
interface Shown {
  readonly name: string
  readonly servers: readonly string[]
}

/** Where the doors of a workspace are, relative to this page so that a proxy's prefix does no harm. */
const doorsOf = (name: string) => {
  const segment = encodeURIComponent(name)
  return {
    mcp: name === DEFAULT_WORKSPACE ? 'mcp' : `mcp/${segment}`,
    sse: name === DEFAULT_WORKSPACE ? 'sse' : `mcp/${segment}/sse`,
    actions: `actions/${segment}/openapi.json`,
  }
}

const HERE = { healthy: 'healthz', ready: 'readyz', metrics: 'metrics', actions: 'actions/openapi.json' } as const

/** What there is, for programs. */
export const indexJson = (version: string, workspaces: readonly Shown[]): Json =>
  Json.of({
    name: 'dragoman',
    version,
    workspaces: workspaces.map(({ name, servers }) => ({ name, servers, ...doorsOf(name) })),
    ...HERE,
  })

/** What there is, for people. */
export const indexHtml = (version: string, workspaces: readonly Shown[]): string => {
  const rows = workspaces.map(({ name, servers }) => {
    const { mcp, sse, actions } = doorsOf(name)
    const cells = [
      escaped(name),
      escaped(servers.join(', ')),
      `<code>${mcp}</code>`,
      `<code>${sse}</code>`,
      link(actions),
    ]
    return `<tr>${cells.map(cell => `<td>${cell}</td>`).join('')}</tr>`
  })
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>dragoman</title>
<style>body{font:16px/1.5 system-ui;margin:2rem;max-width:60rem}td,th{padding:.2rem 1rem .2rem 0;text-align:left}</style>
<h1>dragoman ${escaped(version)}</h1>
<table><tr><th>workspace</th><th>servers</th><th>MCP</th><th>SSE</th><th>REST</th></tr>
${rows.join('\n')}
</table>
<p>${Object.values(HERE).map(link).join(' · ')}</p>
</html>
`
}

const link = (path: string): string => `<a href="${path}">${path}</a>`

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, char => ENTITIES[char] ?? char)
