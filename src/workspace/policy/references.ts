import { methodRow } from '../../protocol/methods.ts'
import type { Json } from '../../wire/json/json.ts'
import { foldName } from '../../wire/member-names.ts'
import type { ListKind } from '../catalog/view.ts'

/** A tool, prompt or resource that the params of a request name; which of them is not always clear. */
export interface Reference {
  readonly kinds: readonly ListKind[]
  readonly text: string
}

const SEPARATORS = /[_-]/g
const MOST = 10_000 // things that one request may name: each is judged
const MOST_BYTES = 256 * 1024 // of params in which names are looked for

/** What a member names, by its folded key without separators; any key that ends in `uri`, `url` or `href` (or their plural) names resources. */
const NAMED: ReadonlyMap<string, readonly ListKind[]> = new Map<string, readonly ListKind[]>([
  ...['name', 'names'].map(key => [key, ['tools', 'prompts']] as const),
  ...['tool', 'tools', 'toolname', 'toolnames'].map(key => [key, ['tools']] as const),
  ...['prompt', 'prompts', 'promptname', 'promptnames'].map(key => [key, ['prompts']] as const),
  ...['resource', 'resources', 'resourcesubscriptions'].map(key => [key, ['resources']] as const),
])
const URI = /(uri|url|href)s?$/

/** Content of the caller's own, whatever its keys are. */
const OPAQUE: ReadonlySet<string> = new Set(['_meta', 'arguments', 'inputResponses'])

const kindsOf = (key: string): readonly ListKind[] | undefined => {
  const folded = foldName(key).replace(SEPARATORS, '')
  return NAMED.get(folded) ?? (URI.test(folded) ? ['resources'] : undefined)
}

/**
 * Everything an extension method names, at any depth; undefined if that is too much to judge. Methods of the
 * specification name one thing, and their own route judges it.
 */
export const referencesIn = (method: string, params: Json): readonly Reference[] | undefined => {
  if (methodRow(method)) return []
  if (params.size > MOST_BYTES) return undefined
  const found: Reference[] = []
  const pending: [kinds: readonly ListKind[] | undefined, json: Json][] = [[undefined, params]]
  for (let next = pending.pop(); next; next = pending.pop()) {
    const [kinds, json] = next
    const text = json.asString()
    if (text !== undefined && kinds) found.push({ kinds, text })
    for (const [key, value] of json.entries()) if (!OPAQUE.has(key)) pending.push([kindsOf(key), value])
    for (const element of json.elements()) pending.push([kinds, element]) // an array names what its key says, at any depth
    if (found.length > MOST) return undefined
  }
  return found
}
