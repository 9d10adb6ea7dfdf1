import type { WorkspaceConfig } from '../../config/snapshot.ts'
import { EVERYTHING, type Policy } from '../../protocol/policy.ts'
import { createPolicy } from './policy.ts'

/** The servers of a workspace that a caller within a policy may know of. */
export type VisibleServers = (workspace: WorkspaceConfig, policy: Policy | undefined) => readonly string[]

/** Works that out once for each workspace and policy. */
export const createVisibleServers = (): VisibleServers => {
  const known = new WeakMap<WorkspaceConfig, WeakMap<Policy, readonly string[]>>()
  return (workspace, policy = EVERYTHING) => {
    const mine = known.get(workspace) ?? new WeakMap<Policy, readonly string[]>()
    known.set(workspace, mine)
    const before = mine.get(policy)
    if (before) return before
    const rules = createPolicy(workspace.policy, policy)
    const visible = workspace.servers.filter(server => rules.allowsServer(server))
    mine.set(policy, visible)
    return visible
  }
}
