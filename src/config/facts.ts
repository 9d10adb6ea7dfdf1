import type { Policy } from '../protocol/policy.ts'
import type { Fact } from './difference.ts'
import { formatPath } from './problems.ts'
import type { Overlay, ServerConfig, Snapshot, WorkspaceConfig } from './snapshot.ts'

/** Everything a configuration says, by what it says it of. */
export interface AllFacts {
  readonly servers: ReadonlyMap<string, readonly Fact[]>
  readonly workspaces: ReadonlyMap<string, readonly Fact[]>
  readonly policies: ReadonlyMap<string, readonly Fact[]>
  readonly settings: ReadonlyMap<string, readonly Fact[]>
}

export const factsOf = ({ servers, workspaces, policies, listen, auth, sse, limits }: Snapshot): AllFacts => ({
  servers: mapped(servers, serverFacts),
  workspaces: mapped(workspaces, workspaceFacts),
  policies: mapped(policies ?? new Map(), policy => policyFacts(policy, [])),
  settings: new Map(
    Object.entries({ listen, auth, sse, limits }).map(([name, value]) => [name, flat(value ?? {}, [], isShown)]),
  ),
})

const mapped = <T>(things: ReadonlyMap<string, T>, facts: (thing: T) => Fact[]): Map<string, Fact[]> =>
  new Map([...things].map(([name, thing]) => [name, facts(thing)]))

/** What of a server can be no secret; an address, an argument or a header may always be one. */
const OPEN = new Set(
  `kind type era timeout pool disabled concurrency builtin root showHidden tenant group reason limits allowCrossOriginEndpoint allowCrossOriginRedirect`.split(
    ' ',
  ),
)

const serverFacts = ({ name: _name, ...config }: ServerConfig): Fact[] => {
  const { timeoutMs: timeout, personal, ...rest } = { timeoutMs: undefined, personal: undefined, ...config }
  // As a whole: an entry without anything in it means something, too.
  const credentials: Fact[] = personal === undefined ? [] : [{ at: 'credentials', value: personal }]
  return [...flat({ ...rest, timeout }, [], ([key = '']) => OPEN.has(key)), ...credentials]
}

const workspaceFacts = ({ servers, names, strict, instructions, policy, overlays }: WorkspaceConfig): Fact[] => [
  ...flat({ servers, names, strict }, [], isShown),
  ...flat({ instructions }, [], () => false),
  ...policyFacts(policy, ['policy']),
  ...[...overlays].flatMap(([server, tools]) =>
    [...tools].flatMap(([tool, overlay]) => overlayFacts(overlay, ['tools', `${server}/${tool}`])),
  ),
]

const policyFacts = (policy: Policy, path: Path): Fact[] => flat(policy, path, isShown)

/** Fixed arguments are what no caller may see; defaults may be the same. */
const overlayFacts = ({ fixed, defaults, ...shown }: Overlay, path: Path): Fact[] => [
  ...flat(shown, path, isShown),
  ...flat({ fixed, default: defaults }, [...path, 'arguments'], () => false),
]

type Path = readonly string[]
type Shows = (path: Path) => boolean

const isShown: Shows = () => true

/** One fact for each value that is no object; lists are values. */
const flat = (value: unknown, path: Path, shows: Shows): Fact[] => {
  if (value === undefined) return []
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return Object.entries(value).flatMap(([key, member]) => flat(member, [...path, key], shows))
  const at = formatPath(path)
  return [shows(path) ? { at, value, text: textOf(value) } : { at, value }]
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
