import type { WorkspaceConfig } from '../../config/snapshot.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { isLoginTool, LOGIN_TOOL } from '../../protocol/login-tool.ts'
import { EVERYTHING, type Patterns, type Policy } from '../../protocol/policy.ts'
import type { Json } from '../../wire/json/json.ts'
import type { ListKind } from '../catalog/list-kinds.ts'
import { compileGlob, compileUriGlobs, type GlobMatcher } from './globs.ts'

/** Decides what a caller may see and use. */
export interface PolicyRules {
  /** `item` is the definition as shown. An unlisted tool has none, and counts as one that changes data. */
  allows(kind: ListKind, server: string, original: string, item?: Json): boolean
  allowsServer(server: string): boolean
  /** Whether a caller may log in at a server: some tool of it may be allowed, and the tool `login` is not denied. */
  allowsLogin(server: string): boolean
  /** Whether items of that kind may be hidden at an allowed server. */
  hides(kind: ListKind): boolean
  readonly isOpen: boolean // everything is allowed
}

type PatternKind = keyof Patterns

const PATTERN_KIND: Readonly<Record<ListKind, PatternKind>> = {
  tools: 'tools',
  prompts: 'prompts',
  resources: 'resources',
  templates: 'resources',
}
const PATTERN_KINDS: readonly PatternKind[] = ['servers', 'tools', 'prompts', 'resources']

/** The rules of all policies together: an item is allowed if every policy allows it. */
export const createPolicy = (...given: readonly Policy[]): PolicyRules => {
  const policies = given.flatMap(policy => (policy.also ? [policy, policy.also] : [policy]))
  const checks = policies.map(compilePolicy)
  const permits = (kind: ListKind | 'servers', text: string): boolean => checks.every(check => check(kind, text))
  const readOnly = policies.some(policy => policy.readOnly)
  const isRestricted = (kind: PatternKind): boolean =>
    policies.some(({ allow, deny }) => allow[kind] !== undefined || (deny[kind]?.length ?? 0) > 0)
  const mayLogIn = policies.map(compileLoginCheck)
  const allowsLogin = (server: string): boolean => permits('servers', server) && mayLogIn.every(check => check(server))
  return {
    allows: (kind, server, original, item) => {
      if (kind === 'tools' && isLoginTool(item)) return allowsLogin(server)
      return (
        permits('servers', server) &&
        permits(kind, PATTERN_KIND[kind] === 'resources' ? original : `${server}/${original}`) &&
        !(readOnly && kind === 'tools' && !isReadOnly(item))
      )
    },
    allowsServer: server => permits('servers', server),
    allowsLogin,
    hides: kind => (readOnly && kind === 'tools') || isRestricted(PATTERN_KIND[kind]),
    isOpen: !readOnly && !PATTERN_KINDS.some(isRestricted),
  }
}

/** Makes the function that returns a caller's rules: those of the workspace and of the caller's token. */
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

/** The servers of a workspace that callers with a policy may see. */
type VisibleServers = (workspace: WorkspaceConfig, policy: Policy | undefined) => readonly string[]

/** Computes the visible servers once for each workspace and policy. */
export const createVisibleServers = (): VisibleServers => {
  const known = new WeakMap<WorkspaceConfig, WeakMap<Policy, readonly string[]>>()
  return (workspace, policy = EVERYTHING) => {
    const byPolicy = known.get(workspace) ?? new WeakMap<Policy, readonly string[]>()
    known.set(workspace, byPolicy)
    const before = byPolicy.get(policy)
    if (before) return before
    const rules = createPolicy(workspace.policy, policy)
    const visible = workspace.servers.filter(server => rules.allowsServer(server))
    byPolicy.set(policy, visible)
    return visible
  }
}

/** A tool without the hint may change data: that is the default of the specification. */
const isReadOnly = (item: Json | undefined): boolean => item?.at('annotations', 'readOnlyHint')?.asBoolean() === true

type PolicyCheck = (kind: ListKind | 'servers', text: string) => boolean

const compilePolicy = ({ allow, deny }: Policy): PolicyCheck => {
  const [allowed, denied] = [compilePatterns(allow), compilePatterns(deny)]
  const allowedUris = allow.resources && compileUriGlobs(allow.resources)
  const deniedUris = compileUriGlobs(deny.resources ?? [])
  return (kind, text) => {
    if (kind === 'resources') return (allowedUris?.matchesEvery(text) ?? true) && !deniedUris.matchesSome(text)
    // A template is matched by its text; a URI made of it is checked when it is read.
    const patterns = kind === 'servers' ? kind : PATTERN_KIND[kind]
    return (allowed[patterns]?.some(glob => glob(text)) ?? true) && !denied[patterns]?.some(glob => glob(text))
  }
}

/** An allow list names tools of servers; the gateway's own tool `login` leads to them. */
const compileLoginCheck = ({ allow, deny }: Policy): ((server: string) => boolean) => {
  const allowed = allow.tools?.map(pattern => {
    const end = pattern.indexOf('/')
    const [whole, ofServer] = [compileGlob(pattern), compileGlob(end < 0 ? pattern : pattern.slice(0, end))]
    return (server: string): boolean => ofServer(server) || whole(`${server}/${LOGIN_TOOL}`)
  })
  const denied = (deny.tools ?? []).map(compileGlob)
  return server =>
    (allowed?.some(matches => matches(server)) ?? true) && !denied.some(glob => glob(`${server}/${LOGIN_TOOL}`))
}

const compilePatterns = (patterns: Patterns): Partial<Record<PatternKind, readonly GlobMatcher[]>> =>
  Object.fromEntries(PATTERN_KINDS.flatMap(kind => (patterns[kind] ? [[kind, patterns[kind].map(compileGlob)]] : [])))
