import type { Caller, Exchange } from '../../protocol/exchange.ts'
import type { ListKind, MergedList } from '../catalog/view.ts'
import type { Member } from '../member.ts'
import type { RouteContext } from '../routing/route-context.ts'
import { type Reference, referencesIn } from './references.ts'

/** Why an extension method must not reach a server: the first hidden thing it names, or that it names too many. */
export type HiddenReference = Reference | 'too many'

/** Finds what a policy or an overlay hides from the caller among everything that an extension method names. */
export const createHiddenReferences = (context: RouteContext) => {
  const judge = async (caller: Caller, member: Member, references: readonly Reference[]) => {
    const kinds = [...new Set(references.flatMap(reference => reference.kinds))].filter(kind => kind !== 'resources')
    const shelves = new Map<ListKind, MergedList>()
    for (const kind of kinds) shelves.set(kind, await context.lists.get(caller, kind))
    return references.find(reference => isHidden(caller, member, reference, shelves))
  }

  const isHidden = (
    caller: Caller,
    { server, overlays }: Member,
    { kinds, text }: Reference,
    shelves: ReadonlyMap<ListKind, MergedList>,
  ): boolean => {
    const rules = context.rulesOf(caller)
    if (kinds.includes('resources')) return !rules.allows('resources', server, text)
    const overlay = kinds.includes('tools') ? overlays.get(text) : undefined
    if (overlay && isLimited(overlay)) return true
    const listed = kinds.map(kind => shelves.get(kind)?.visibility(server, text))
    if (listed.includes('hidden')) return true
    // A server may have more than it lists: the patterns alone decide about that.
    return !listed.includes('shown') && kinds.some(kind => rules.hides(kind) && !rules.allows(kind, server, text))
  }

  return (
    { caller, method, params }: Exchange,
    member: Member,
  ): HiddenReference | undefined | Promise<HiddenReference | undefined> => {
    if (context.rulesOf(caller).isOpen && ![...member.overlays.values()].some(isLimited)) return undefined
    const references = referencesIn(method, params)
    if (!references) return 'too many'
    return references.length > 0 ? judge(caller, member, references) : undefined
  }
}

/** Fixed arguments hold only where they are filled in, which is in `tools/call`. */
const isLimited = ({ hidden, fixed }: { readonly hidden: boolean; readonly fixed: object }): boolean =>
  hidden || Object.keys(fixed).length > 0
