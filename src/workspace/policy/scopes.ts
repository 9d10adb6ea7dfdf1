import type { ScopeRule } from '../../config/snapshot.ts'
import type { Caller, Dispatch, Exchange } from '../../protocol/exchange.ts'
import { MissingScopes } from '../../protocol/scopes.ts'
import { withoutServer } from '../catalog/names.ts'
import { rejectWith } from '../routing/send.ts'
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

const NO_CHECK: ScopeCheck = () => undefined

/** Makes the check from the rules that name tools; the others were checked when the caller was admitted. */
export const createScopeCheck = (scopes: ReadonlyMap<string, ScopeRule> | undefined): ScopeCheck => {
  const rules = [...(scopes ?? [])].flatMap(([scope, { tools }]) =>
    tools ? [{ scope, globs: tools.map(compileGlob) }] : [],
  )
  if (rules.length === 0) return NO_CHECK
  return ({ scopes: held }, server, tools) => {
    if (!held) return undefined
    const names = tools?.map(tool => `${server}/${tool}`)
    const missing = rules
      .filter(({ scope, globs }) => !held.has(scope) && (!names || globs.some(glob => names.some(glob))))
      .map(({ scope }) => scope)
    return missing.length > 0 ? new MissingScopes(held, missing) : undefined
  }
}

/** The tools that the params of an extension method name, which may call them; undefined: too many to tell. */
export const toolsNamedBy = ({ method, params }: Exchange): readonly string[] | undefined =>
  referencesIn(method, params)
    ?.filter(({ kinds }) => kinds.includes('tools'))
    .map(({ text }) => text)

/** Checks the calls to the only server of a workspace; its name may be part of the tool's name. */
export const withScopeCheck = (dispatch: Dispatch, server: string, check: ScopeCheck): Dispatch => {
  if (check === NO_CHECK) return dispatch
  return exchange => {
    const missing = exchange.caller.scopes && check(exchange.caller, server, namesIn(exchange, server))
    if (missing) rejectWith(exchange, missing)
    else dispatch(exchange)
  }
}

const namesIn = (exchange: Exchange, server: string): readonly string[] | undefined => {
  if (exchange.method !== 'tools/call') return toolsNamedBy(exchange)
  const name = exchange.params.get('name')?.asString() ?? ''
  const bare = withoutServer(server, name)
  return bare === undefined ? [name] : [name, bare]
}
