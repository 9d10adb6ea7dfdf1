import { ConfigError } from '../problems.ts'
import { isRawObject } from '../server-entries.ts'
import type { Snapshot } from '../snapshot.ts'
import type { JsonChange } from './json-members.ts'

/** A tool of a server, by its own name. */
interface AllowedTool {
  readonly server: string
  readonly tool: string
}

/**
 * The changes that make a workspace show these tools only. A file without workspaces gets those that it has by default, so that
 * no URL disappears. Throws a ConfigError if the workspace has a policy of another name.
 */
export const allowListChanges = (
  root: unknown,
  { workspaces }: Pick<Snapshot, 'workspaces'>,
  workspace: string,
  tools: readonly AllowedTool[],
): readonly JsonChange[] => {
  const allowed = tools.map(({ server, tool }) => `${server}/${tool}`)
  const written = isRawObject(root) && isRawObject(root.workspaces) ? root.workspaces : undefined
  const entry = written?.[workspace]
  if (isRawObject(entry)) {
    if (typeof entry.policy === 'string')
      throw new ConfigError(
        `workspace "${workspace}" uses the policy "${entry.policy}" by its name: change that one, or write a policy into the workspace`,
      )
    return [{ path: ['workspaces', workspace, 'policy', 'allow', 'tools'], value: allowed }]
  }
  const derived = [...workspaces.values()].map(({ name, servers }) => {
    const policy = name === workspace ? { policy: { allow: { tools: allowed } } } : {}
    return [name, { servers: name === 'default' && servers.length > 1 ? '*' : servers, ...policy }] as const
  })
  return [{ path: ['workspaces'], value: Object.fromEntries(derived) }]
}
