import type { Caller, Exchange } from '../../protocol/exchange.ts'
import { methodInfo } from '../../protocol/methods.ts'
import type { Json } from '../../wire/json/json.ts'
import { foldName } from '../../wire/json/member-names.ts'
import type { ListKind } from '../catalog/list-kinds.ts'
import type { MergedList } from '../catalog/merged-list.ts'
import type { Member } from '../member.ts'
import type { RouteContext } from '../routing/route-context.ts'

/** A tool, prompt or resource that the params of a request name; `kinds` has all it may be. */
interface Reference {
  readonly kinds: readonly ListKind[]
  readonly text: string
}

/** Why a request must not reach a server: the first hidden reference, or too many references to check. */
export type HiddenReference = Reference | 'too many'

/** Makes the function that checks whether an extension method names anything that is hidden from its caller. */
export const createHiddenReferences = (context: RouteContext) => {
  const findHidden = async (caller: Caller, member: Member, references: readonly Reference[]) => {
    const kinds = new Set(references.flatMap(reference => reference.kinds))
    const lists = new Map<ListKind, MergedList>()
    for (const kind of kinds) if (kind !== 'resources') lists.set(kind, await context.lists.get(caller, kind))
    return references.find(reference => isHidden(caller, member, reference, lists))
  }

  const isHidden = (
    caller: Caller,
    { server, overlays }: Member,
    { kinds, text }: Reference,
    lists: ReadonlyMap<ListKind, MergedList>,
  ): boolean => {
    const rules = context.rulesOf(caller)
    if (kinds.includes('resources')) return !rules.allows('resources', server, text)
    const overlay = kinds.includes('tools') ? overlays.get(text) : undefined
    if (overlay && isLimiting(overlay)) return true
    const visibility = kinds.map(kind => lists.get(kind)?.visibility(server, text))
    if (visibility.includes('hidden')) return true
    // A server may have more than it lists: the patterns alone decide about that.
    return !visibility.includes('shown') && kinds.some(kind => rules.hides(kind) && !rules.allows(kind, server, text))
  }

  return (
    { caller, method, params }: Exchange,
    member: Member,
  ): HiddenReference | undefined | Promise<HiddenReference | undefined> => {
    if (context.rulesOf(caller).isOpen && ![...member.overlays.values()].some(isLimiting)) return undefined
    const references = referencesIn(method, params)
    if (!references) return 'too many'
    return references.length > 0 ? findHidden(caller, member, references) : undefined
  }
}

/** Fixed arguments take effect in `tools/call` only, so no other method may use the tool. */
const isLimiting = ({ hidden, fixed }: { readonly hidden: boolean; readonly fixed: object }): boolean =>
  hidden || Object.keys(fixed).length > 0

const SEPARATORS = /[_-]/g
const MOST = 10_000 // references in one request: each is checked
const MOST_BYTES = 256 * 1024 // of params that are searched

/** What the value of a key names, by the folded key without separators. */
const NAMED: ReadonlyMap<string, readonly ListKind[]> = new Map<string, readonly ListKind[]>([
  ...['name', 'names'].map(key => [key, ['tools', 'prompts']] as const),
  ...['tool', 'tools', 'toolname', 'toolnames'].map(key => [key, ['tools']] as const),
  ...['prompt', 'prompts', 'promptname', 'promptnames'].map(key => [key, ['prompts']] as const),
  ...['resource', 'resources', 'resourcesubscriptions'].map(key => [key, ['resources']] as const),
])
const URI = /(uri|url|href)s?$/

/** Members with content of the caller: their keys mean nothing. */
const OPAQUE: ReadonlySet<string> = new Set(['_meta', 'arguments', 'inputResponses'])

const kindsOf = (key: string): readonly ListKind[] | undefined => {
  const folded = foldName(key).replace(SEPARATORS, '')
  return NAMED.get(folded) ?? (URI.test(folded) ? ['resources'] : undefined)
}

/**
 * All references in the params of an extension method, at any depth; undefined if there are too many. A method of the
 * specification has one reference, and its own route checks it.
 */
export const referencesIn = (method: string, params: Json): readonly Reference[] | undefined => {
  if (methodInfo(method)) return []
  if (params.size > MOST_BYTES) return undefined
  const found: Reference[] = []
  const pending: [kinds: readonly ListKind[] | undefined, json: Json][] = [[undefined, params]]
  for (let next = pending.pop(); next; next = pending.pop()) {
    const [kinds, json] = next
    const text = json.asString()
    if (text !== undefined && kinds) found.push({ kinds, text })
    for (const [key, value] of json.entries()) if (!OPAQUE.has(key)) pending.push([kindsOf(key), value])
    for (const element of json.elements()) pending.push([kinds, element]) // the key of an array is that of its elements
    if (found.length > MOST) return undefined
  }
  return found
}
