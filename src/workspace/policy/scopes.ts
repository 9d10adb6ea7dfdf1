import type { ScopeRule } from '../../config/snapshot.ts'
import type { Caller, Exchange } from '../../protocol/exchange.ts'
import { MissingScopes } from '../../protocol/scopes.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { compileGlob } from './globs.ts'
import { referencesIn } from './hidden-references.ts'

/**
 * The error for a caller whose token lacks scopes that one of these tools of a server needs; undefined if it lacks none.
 * Without `tools`, all tools are meant.
 */
export type ScopeCheck = (
  caller: Pick<Caller, 'scopes'>,
  server: string,
  tools: readonly string[] | undefined,
) => MissingScopes | undefined

const MOST_KNOWN = 1000 // tools
const LONGEST_KNOWN = 256 // characters of a name
const NONE: readonly string[] = []

/** Makes the check from the rules that name tools; the others were checked when the caller was admitted. Undefined: there are none. */
export const createScopeCheck = (scopes: ReadonlyMap<string, ScopeRule> | undefined): ScopeCheck | undefined => {
  const rules = [...(scopes ?? [])].flatMap(([scope, { tools }]) =>
    tools ? [{ scope, globs: tools.map(compileGlob) }] : [],
  )
  if (rules.length === 0) return undefined
  const all = rules.map(({ scope }) => scope)
  const known = new BoundedCache<readonly string[]>(MOST_KNOWN, Number.POSITIVE_INFINITY) // by tool
  const scopesOf = (tool: string): readonly string[] => {
    const before = known.get(tool)
    if (before) return before
    const needed = rules.filter(({ globs }) => globs.some(glob => glob(tool))).map(({ scope }) => scope)
    if (tool.length <= LONGEST_KNOWN) known.set(tool, needed)
    return needed
  }
  return ({ scopes: held }, server, tools) => {
    if (!held) return undefined
    let missing: readonly string[] = NONE // most calls lack none: no list is made for them
    const add = (scopes: readonly string[]): void => {
      for (const scope of scopes) if (!held.has(scope) && !missing.includes(scope)) missing = [...missing, scope]
    }
    if (tools) for (const tool of tools) add(scopesOf(`${server}/${tool}`))
    else add(all)
    return missing.length > 0 ? new MissingScopes(held, missing) : undefined
  }
}

/** The tools that the params of an extension method name, which may call them; undefined: too many to tell. */
export const toolsNamedBy = ({ method, params }: Exchange): readonly string[] | undefined =>
  referencesIn(method, params)
    ?.filter(({ kinds }) => kinds.includes('tools'))
    .map(({ text }) => text)
