import type { ConfigObject } from '../../../admin/api/config.ts'
import { isObject } from '../../mcp/messages.ts'
import { type DraftValue, objectAt, renameKey, withValue } from './edits.ts'

/** Gives a server another name, wherever the configuration names it: workspaces, overlays, and patterns of policies. */
export const renameServer = (draft: DraftValue, path: readonly string[], to: string): DraftValue => {
  const from = path.at(-1) ?? ''
  let next = renameKey(draft, path, to)
  for (const [workspace, entry] of Object.entries(objectAt(next.value, ['workspaces']))) {
    if (!isObject(entry)) continue
    const at = ['workspaces', workspace]
    if (Array.isArray(entry.servers)) next = set(next, [...at, 'servers'], entry.servers.map(rename(from, to)))
    for (const tool of Object.keys(objectAt(entry, ['tools'])))
      if (tool.startsWith(`${from}/`)) next = renameKey(next, [...at, 'tools', tool], `${to}${tool.slice(from.length)}`)
    if (isObject(entry.policy)) next = set(next, [...at, 'policy'], renameInPolicy(entry.policy, from, to))
  }
  for (const [name, policy] of Object.entries(objectAt(next.value, ['policies'])))
    if (isObject(policy)) next = set(next, ['policies', name], renameInPolicy(policy, from, to))
  return next
}

const set = (draft: DraftValue, path: readonly string[], value: unknown): DraftValue => ({
  ...draft,
  value: withValue(draft.value, path, value),
})

const rename =
  (from: string, to: string) =>
  (name: unknown): unknown =>
    name === from ? to : name

/** Patterns are `<server>` or `<server>/<name>`; those with a star in the server may mean others, too. */
const renameInPolicy = (policy: ConfigObject, from: string, to: string): ConfigObject =>
  Object.fromEntries(
    Object.entries(policy).map(([rule, patterns]) => [
      rule,
      isObject(patterns)
        ? Object.fromEntries(
            Object.entries(patterns).map(([kind, list]) => [
              kind,
              Array.isArray(list) && kind !== 'resources'
                ? list.map(pattern => renameInPattern(pattern, from, to))
                : list,
            ]),
          )
        : patterns,
    ]),
  )

const renameInPattern = (pattern: unknown, from: string, to: string): unknown => {
  if (pattern === from) return to
  return typeof pattern === 'string' && pattern.startsWith(`${from}/`) ? to + pattern.slice(from.length) : pattern
}
