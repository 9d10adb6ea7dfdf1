import type { AdminRole } from './api/session.ts'

// Which memories a caller may see. No principal sees the memory of another one; only owners do, who can read its files.

/** Who asks. */
export interface TenantCaller {
  readonly role: AdminRole
  readonly principal: string | undefined
}

/** How the memories of a server are divided. */
export interface TenantRules {
  readonly tenantBy: 'workspace' | 'principal'
  readonly workspaces: readonly string[] // that the server is a member of
  /** The principal of callers without a token; undefined: they are anonymous. */
  readonly withoutToken: string | undefined
  readonly isTokenRequired: boolean
}

const ANONYMOUS = 'anybody' // shared by all callers without a principal

const ofPrincipal = (principal: string | undefined): string =>
  principal === undefined ? ANONYMOUS : `principal:${principal}`

/** The memory that MCP calls of this caller use, if each principal has one. */
const ownTenant = ({ principal }: TenantCaller, { isTokenRequired, withoutToken }: TenantRules): string =>
  ofPrincipal(isTokenRequired ? principal : withoutToken)

/** Whether a stored memory belongs to a server that divides them this way; several servers share one folder. */
const isOfServer = (tenant: string, { tenantBy }: TenantRules): boolean =>
  tenantBy === 'workspace' ? tenant.startsWith('workspace:') : tenant === ANONYMOUS || tenant.startsWith('principal:')

/** The memories that a caller may see: the one that is meant by default first, then the other ones by name. */
export const visibleTenants = (
  caller: TenantCaller,
  rules: TenantRules,
  stored: readonly string[],
): readonly string[] => {
  if (rules.tenantBy === 'workspace') {
    // Viewers have tokens for every workspace, and the callers of a workspace share its memory.
    const served = rules.workspaces.map(name => `workspace:${name}`)
    const others = caller.role === 'owner' ? stored.filter(tenant => isOfServer(tenant, rules)) : []
    return [...new Set([...served, ...others.toSorted()])]
  }
  const own = ownTenant(caller, rules)
  if (caller.role !== 'owner') return [own]
  return [...new Set([own, ...stored.filter(tenant => isOfServer(tenant, rules)).toSorted()])]
}

/** A tenant in words. */
export const tenantLabel = (tenant: string): string =>
  tenant === ANONYMOUS ? 'anonymous callers' : tenant.replace(':', ' ')
