import type { WorkspaceConfig } from '../config/snapshot.ts'
import type { Dispatch } from '../protocol/exchange.ts'
import type { Member } from '../workspace/member.ts'
import { createPolicy } from '../workspace/policy/policy.ts'
import { createSingleServerRoute } from '../workspace/routing/route.ts'
import { createWorkspace, type Workspace, type WorkspaceDeps } from '../workspace/workspace.ts'

/**
 * Opens a workspace. One server without rules is shown as it is, at no cost; only callers whose token has a policy
 * take the general way there.
 */
export const openWorkspace = (config: WorkspaceConfig, members: readonly Member[], deps: WorkspaceDeps): Workspace => {
  const [only] = members
  if (!only || !isBare(config)) return createWorkspace(config, members, deps)
  const direct = createSingleServerRoute(only.server, only.bridged, deps.log, deps.onListFault)
  const { previous: before, ...others } = deps // whoever came before is not kept for later
  let ruled = before?.catalog && createWorkspace(config, members, deps)
  const general: Dispatch = exchange => {
    ruled ??= createWorkspace(config, members, others)
    ruled.dispatch(exchange)
  }
  return {
    dispatch: exchange => (exchange.caller.policy ? general : direct)(exchange),
    get catalog() {
      return ruled?.catalog
    },
    get provenanceStore() {
      return ruled?.provenanceStore
    },
    get snapshots() {
      return ruled?.snapshots
    },
    close: () => ruled?.close(),
  }
}

const isBare = ({ servers, names, instructions, policy, overlays }: WorkspaceConfig): boolean =>
  servers.length === 1 &&
  names === 'plain' &&
  instructions === undefined &&
  createPolicy(policy).isOpen &&
  [...overlays.values()].every(tools => tools.size === 0)
