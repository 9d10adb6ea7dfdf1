import type { z } from 'zod'
import type { ConfigPath } from './json-text.ts'
import { nearest, quoteAll } from './problems.ts'
import type { Findings } from './remote.ts'
import type { Overlay } from './snapshot.ts'
import type { overlaySchema } from './workspace-schema.ts'

type Written = z.output<typeof overlaySchema>
type Overlays = Map<string, Map<string, Overlay>>

/** Reads the `tools` of a workspace: by server, then by the tool's own name. */
export const readOverlays = (
  entries: Readonly<Record<string, Written>>,
  servers: readonly string[],
  path: ConfigPath,
  found: Findings,
): Overlays => {
  const overlays: Overlays = new Map()
  for (const [key, written] of Object.entries(entries)) {
    const place = placeOf(key, servers)
    if (!place) found.problems.push({ path: [...path, key], message: misplaced(key, servers) })
    else overlays.set(place.server, (overlays.get(place.server) ?? new Map()).set(place.tool, overlayOf(written)))
  }
  for (const [server, tools] of overlays) reportTwins(server, tools, path, found)
  return overlays
}

/** Servers may have a `/` in their names: the longest one that fits is meant. */
const placeOf = (key: string, servers: readonly string[]): { server: string; tool: string } | undefined => {
  const fitting = servers.filter(server => key.startsWith(`${server}/`) && key.length > server.length + 1)
  const [server] = fitting.sort((a, b) => b.length - a.length)
  return server === undefined ? undefined : { server, tool: key.slice(server.length + 1) }
}

const misplaced = (key: string, servers: readonly string[]): string => {
  const [server = ''] = key.split('/')
  const meant = key.includes('/') ? nearest(server, servers) : undefined
  const hint = meant ? `did you mean ${JSON.stringify(`${meant}${key.slice(server.length)}`)}?` : ''
  return `expected "<server>/<tool>" with a server of this workspace (${quoteAll(servers)})${hint ? `; ${hint}` : ''}`
}

const overlayOf = ({ name, title, description, hidden, annotations, arguments: given }: Written): Overlay => ({
  ...(name === undefined ? {} : { name }),
  ...(title === undefined ? {} : { title }),
  ...(description === undefined ? {} : { description }),
  ...(annotations === undefined ? {} : { annotations }),
  hidden,
  fixed: given?.fixed ?? {},
  defaults: given?.default ?? {},
})

/** Two tools of one server under one name: only one of them could be called. */
const reportTwins = (server: string, tools: ReadonlyMap<string, Overlay>, path: ConfigPath, found: Findings): void => {
  const seen = new Map<string, string>()
  for (const [tool, { name, hidden }] of tools) {
    if (name === undefined || hidden) continue
    const other = seen.get(name)
    if (other !== undefined) {
      const message = `${JSON.stringify(name)} is the name given to ${JSON.stringify(`${server}/${other}`)} already`
      found.problems.push({ path: [...path, `${server}/${tool}`, 'name'], message })
    }
    seen.set(name, tool)
  }
}
