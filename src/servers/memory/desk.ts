import type { Caller } from '../../protocol/exchange.ts'
import { checkedGroup } from './group-id.ts'
import type { MemoryStore } from './store.ts'

/** What every tool works with: one tenant's store, and which groups are meant. */
export interface Desk {
  with<T>(work: (store: MemoryStore) => Promise<T>): Promise<T>
  /** The group to write into; blank means the default. */
  groupFor(given: string | undefined): string
  /** Has what was just written made searchable by meaning, where a model for that is configured. */
  readonly embedLater: (store: MemoryStore, group: string) => Promise<void>
  /** The groups to read; none named means the default. */
  groupsFor(given: readonly string[] | undefined): readonly string[]
}

/** Sets up a desk over a tenant's store; `group` is where things go that name none. */
export const createDesk = (
  store: Desk['with'],
  group: string,
  embedLater: Desk['embedLater'] = async () => {},
): Desk => {
  const groupFor = (given: string | undefined): string => {
    return checkedGroup(given === undefined || given.trim() === '' ? group : given)
  }
  return {
    with: store,
    embedLater,
    groupFor,
    groupsFor: given => (given === undefined || given.length === 0 ? [group] : [...new Set(given.map(groupFor))]),
  }
}

/** Whose memory a caller reads and writes: one for everybody in a workspace, or one each. */
export type TenantBy = 'workspace' | 'principal'

/** Nobody in particular has no memory of his own: he shares the one of strangers. */
export const tenantOf = ({ workspace, principal }: Caller, by: TenantBy): string => {
  if (by === 'workspace') return `workspace:${workspace}`
  return principal === undefined ? 'anybody' : `principal:${principal}`
}

/** Who a change is put down to in the audit trail. */
export const byOf = ({ caller }: { readonly caller: Caller }): { readonly actor: string | undefined } => ({
  actor: caller.principal,
})
