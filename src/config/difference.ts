import { isDeepStrictEqual } from 'node:util'
import type { Policy } from '../protocol/policy.ts'
import { formatPath } from './problems.ts'
import type { Overlay, ServerConfig, Snapshot, WorkspaceConfig } from './snapshot.ts'

/** How two configurations differ. Contains no secrets, so it can be shown. */
export interface ConfigDifference {
  readonly servers: readonly Change[]
  readonly workspaces: readonly Change[]
  readonly policies: readonly Change[]
  readonly settings: readonly Change[] // take effect after a restart only
}

/** A server, workspace, policy or group of settings that differs. */
export interface Change {
  readonly name: string
  readonly kind: 'added' | 'removed' | 'changed'
  readonly details: readonly Detail[]
}

/** One setting that differs. The values are given only if they cannot be secrets. */
export interface Detail {
  readonly at: string
  readonly from?: string
  readonly to?: string
}

/** One setting of a configuration: compared by `value`, shown as `text` unless it may be a secret. */
interface Setting {
  readonly at: string
  readonly value: unknown
  readonly text?: string
}

type SettingsByName = ReadonlyMap<string, readonly Setting[]>

/** What changes if the second configuration replaces the first. */
export const compareConfigs = (before: Snapshot, after: Snapshot): ConfigDifference => {
  const [old, now] = [settingsOf(before), settingsOf(after)]
  return {
    servers: changes(old.servers, now.servers),
    workspaces: changes(old.workspaces, now.workspaces),
    policies: changes(old.policies, now.policies),
    settings: changes(old.settings, now.settings),
  }
}

export const hasNoChanges = ({ servers, workspaces, policies, settings }: ConfigDifference): boolean =>
  servers.length + workspaces.length + policies.length + settings.length === 0

/** What differs, by name: `{ servers: { added: ['github'] } }`. */
export const changedNames = (difference: ConfigDifference): Readonly<Record<string, ChangedNames>> =>
  Object.fromEntries(
    Object.entries(difference).flatMap(([what, changed]: [string, readonly Change[]]) => {
      const kinds = [...new Set(changed.map(({ kind }) => kind))]
      const names = (kind: Change['kind']) => changed.filter(it => it.kind === kind).map(({ name }) => name)
      return kinds.length === 0 ? [] : [[what, Object.fromEntries(kinds.map(kind => [kind, names(kind)]))]]
    }),
  )

type ChangedNames = { readonly [kind in Change['kind']]?: readonly string[] }

const changes = (before: SettingsByName, after: SettingsByName): Change[] => {
  const names = [...new Set([...before.keys(), ...after.keys()])]
  return names.flatMap(name => {
    const [old, now] = [before.get(name), after.get(name)]
    if (!old) return { name, kind: 'added' as const, details: (now ?? []).flatMap(outlineOf) }
    if (!now) return { name, kind: 'removed' as const, details: [] }
    const found = details(old, now)
    return found.length > 0 ? { name, kind: 'changed' as const, details: found } : []
  })
}

const OUTLINE = ['kind', 'builtin', 'servers', 'names']

/** The outline of something new; the rest is in the file. */
const outlineOf = ({ at, text }: Setting): Detail[] =>
  text !== undefined && OUTLINE.includes(at) ? [{ at, to: text }] : []

const details = (before: readonly Setting[], after: readonly Setting[]): Detail[] => {
  const [old, now] = [byPath(before), byPath(after)]
  return [...new Set([...old.keys(), ...now.keys()])].flatMap(at => {
    const [from, to] = [old.get(at), now.get(at)]
    if (isDeepStrictEqual(from?.value, to?.value)) return []
    return {
      at,
      ...(from?.text === undefined ? {} : { from: from.text }),
      ...(to?.text === undefined ? {} : { to: to.text }),
    }
  })
}

const byPath = (settings: readonly Setting[]): Map<string, Setting> =>
  new Map(settings.map(setting => [setting.at, setting]))

const SHOWN_SETTINGS = ['listen', 'auth', 'sse', 'tasks', 'limits', 'cluster', 'audit', 'recorder'] as const
/** Their addresses and headers may hold passwords. */
const HIDDEN_SETTINGS = ['store', 'telemetry'] as const

const settingsOf = ({ servers, workspaces, policies, ...rest }: Snapshot) => ({
  servers: mapValues(servers, serverSettings),
  workspaces: mapValues(workspaces, workspaceSettings),
  policies: mapValues(policies ?? new Map(), policy => policySettings(policy, [])),
  settings: new Map([
    ...SHOWN_SETTINGS.map(name => [name, settingsIn(rest[name] ?? {}, [], hideSecrets)] as const),
    ['workers', settingsIn({ count: rest.workers }, [], showAll)] as const,
    ...HIDDEN_SETTINGS.map(name => [name, settingsIn(rest[name] ?? {}, [], hideAll)] as const),
  ]),
})

const mapValues = <T>(things: ReadonlyMap<string, T>, read: (thing: T) => Setting[]): SettingsByName =>
  new Map([...things].map(([name, thing]) => [name, read(thing)]))

/** Settings of a server that cannot be secrets; an address, an argument or a header may be one. */
const PUBLIC = new Set(
  `kind type era timeout pool disabled on concurrency pin builtin root showHidden tenant group reason limits allowCrossOriginEndpoint allowCrossOriginRedirect`.split(
    ' ',
  ),
)

const serverSettings = ({ name: _name, ...config }: ServerConfig): Setting[] => {
  const { timeoutMs: timeout, personal, ...rest } = { timeoutMs: undefined, personal: undefined, ...config }
  // Compared as a whole: an empty entry has a meaning, too.
  const credentials: Setting[] = personal === undefined ? [] : [{ at: 'credentials', value: personal }]
  return [...settingsIn({ ...rest, timeout }, [], ([key = '']) => PUBLIC.has(key)), ...credentials]
}

const workspaceSettings = ({
  servers,
  names,
  nameLength,
  strict,
  instructions,
  policy,
  overlays,
}: WorkspaceConfig): Setting[] => [
  ...settingsIn({ servers, names, nameLength, strict }, [], showAll),
  ...settingsIn({ instructions }, [], hideAll),
  ...policySettings(policy, ['policy']),
  ...[...overlays].flatMap(([server, tools]) =>
    [...tools].flatMap(([tool, overlay]) => overlaySettings(overlay, ['tools', `${server}/${tool}`])),
  ),
]

const policySettings = (policy: Policy, path: readonly string[]): Setting[] => settingsIn(policy, path, showAll)

/** Fixed arguments are hidden from callers, and defaults may be secrets too. */
const overlaySettings = ({ fixed, defaults, ...shown }: Overlay, path: readonly string[]): Setting[] => [
  ...settingsIn(shown, path, showAll),
  ...settingsIn({ fixed, default: defaults }, [...path, 'arguments'], hideAll),
]

type IsPublic = (path: readonly string[]) => boolean

const showAll: IsPublic = () => true
const hideAll: IsPublic = () => false
const hideSecrets: IsPublic = path => path.at(-1) !== 'clientSecret'

/** One setting for each value that is not an object; a list is one value. */
const settingsIn = (value: unknown, path: readonly string[], isPublic: IsPublic): Setting[] => {
  if (value === undefined) return []
  if (value instanceof Map) return settingsIn(Object.fromEntries(value), path, isPublic)
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return Object.entries(value).flatMap(([key, member]) => settingsIn(member, [...path, key], isPublic))
  const at = formatPath(path)
  return [isPublic(path) ? { at, value, text: textOf(value) } : { at, value }]
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
