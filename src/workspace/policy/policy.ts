import type { Caller } from '../../protocol/exchange.ts'
import type { Patterns, Policy } from '../../protocol/policy.ts'
import type { Json } from '../../wire/json/json.ts'
import type { ListKind } from '../catalog/view.ts'
import { compileGlob, type Glob } from './glob.ts'
import { compileUriGlobs } from './uri-globs.ts'

/** Decides what may be seen and used. */
export interface PolicyRules {
  /** `item` is the definition as shown; what is not listed has none, and is taken for the worst. */
  allows(kind: ListKind, server: string, original: string, item?: Json): boolean
  allowsServer(server: string): boolean
  /** Whether something of that kind may be hidden at a server that is allowed. */
  hides(kind: ListKind): boolean
  readonly isOpen: boolean // everything is allowed
}

type Column = keyof Patterns

const COLUMN: Readonly<Record<ListKind, Column>> = {
  tools: 'tools',
  prompts: 'prompts',
  resources: 'resources',
  templates: 'resources',
}
const COLUMNS: readonly Column[] = ['servers', 'tools', 'prompts', 'resources']

/** Joins policies: only what each of them allows is allowed. */
export const createPolicy = (...policies: readonly Policy[]): PolicyRules => {
  const checks = policies.map(compile)
  const permits = (kind: ListKind | 'servers', text: string): boolean => checks.every(check => check(kind, text))
  const readOnly = policies.some(policy => policy.readOnly)
  const isRuled = (column: Column): boolean =>
    policies.some(({ allow, deny }) => allow[column] !== undefined || (deny[column]?.length ?? 0) > 0)
  return {
    allows: (kind, server, original, item) =>
      permits('servers', server) &&
      permits(kind, COLUMN[kind] === 'resources' ? original : `${server}/${original}`) &&
      !(readOnly && kind === 'tools' && !changesNothing(item)),
    allowsServer: server => permits('servers', server),
    hides: kind => (readOnly && kind === 'tools') || isRuled(COLUMN[kind]),
    isOpen: !readOnly && !COLUMNS.some(isRuled),
  }
}

/** What a caller may see: what the workspace and the policy of its token both allow. */
export const createRulesOf = (common: Policy): ((caller: Pick<Caller, 'policy'>) => PolicyRules) => {
  const forAll = createPolicy(common)
  const joined = new WeakMap<Policy, PolicyRules>()
  return ({ policy }) => {
    if (!policy) return forAll
    const rules = joined.get(policy) ?? createPolicy(common, policy)
    joined.set(policy, rules)
    return rules
  }
}

/** The default of the hint is that a tool may change something. */
const changesNothing = (item: Json | undefined): boolean =>
  item?.at('annotations', 'readOnlyHint')?.asBoolean() === true

type Check = (kind: ListKind | 'servers', text: string) => boolean

const compile = ({ allow, deny }: Policy): Check => {
  const [names, denied] = [compileAll(allow), compileAll(deny)]
  const [uris, deniedUris] = [
    allow.resources && compileUriGlobs(allow.resources),
    compileUriGlobs(deny.resources ?? []),
  ]
  return (kind, text) => {
    if (kind === 'resources') return (uris?.hold(text) ?? true) && !deniedUris.touch(text)
    // Templates go by their text: what is made of one is judged when it is read.
    const column = kind === 'servers' ? kind : COLUMN[kind]
    return (names[column]?.some(matches => matches(text)) ?? true) && !denied[column]?.some(matches => matches(text))
  }
}

const compileAll = (patterns: Patterns): Partial<Record<Column, readonly Glob[]>> =>
  Object.fromEntries(COLUMNS.flatMap(column => (patterns[column] ? [[column, patterns[column].map(compileGlob)]] : [])))
