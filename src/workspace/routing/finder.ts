import { namespacesOf } from '../catalog/names.ts'
import type { AmbiguousName, MergedList, ShownItem } from '../catalog/view.ts'

const SEPARATOR = /__|\//g

type Find = MergedList['find']

/**
 * Makes the `find` of a shelf of tools or prompts. `shown` has them by their shown names; the other forms are made when
 * somebody uses one of them for the first time. `servers` are all that the workspace is configured with.
 */
export const createFinder = (shown: ReadonlyMap<string, ShownItem>, servers: readonly string[]): Find => {
  let others: Find | undefined
  return name => {
    const entry = shown.get(name)
    if (entry) return entry
    others ??= findOther(shown.values(), servers)
    return others(name)
  }
}

const findOther = (entries: Iterable<ShownItem>, servers: readonly string[]): Find => {
  const bare = new Map<string, ShownItem[]>()
  for (const entry of entries) for (const name of ownNames(entry)) put(bare, name, entry)
  const owners = serversByName(servers)
  return name => choose(bare.get(name) ?? []) ?? choose(prefixed(name, bare, owners))
}

/** Its server's own word for it, and the one an overlay gave it. */
const ownNames = ({ member, original }: ShownItem): ReadonlySet<string> =>
  new Set([original, member.overlays.get(original)?.name ?? original])

const put = (into: Map<string, ShownItem[]>, name: string, entry: ShownItem): void => {
  const others = into.get(name)
  if (others) others.push(entry)
  else into.set(name, [entry])
}

/** Servers by what may stand for them in a name. */
export const serversByName = (servers: readonly string[]): ReadonlyMap<string, string> => {
  const namespaces = namespacesOf(servers)
  return new Map([
    ...servers.map(server => [namespaces.get(server) ?? server, server] as const),
    ...servers.map(server => [server, server] as const),
  ])
}

/** A name cut at each place where a server's could end: the server, and what would be its word. */
export const splitName = (
  name: string,
  owners: ReadonlyMap<string, string>,
): readonly { server: string; name: string }[] =>
  [...name.matchAll(SEPARATOR)].flatMap(({ index, 0: separator }) => {
    const server = owners.get(name.slice(0, index))
    const rest = name.slice(index + separator.length)
    return server === undefined || rest === '' ? [] : [{ server, name: rest }]
  })

const prefixed = (
  name: string,
  bare: ReadonlyMap<string, readonly ShownItem[]>,
  owners: ReadonlyMap<string, string>,
): readonly ShownItem[] =>
  splitName(name, owners).flatMap(cut =>
    (bare.get(cut.name) ?? []).filter(({ member }) => member.server === cut.server),
  )

const choose = (found: readonly ShownItem[]): ShownItem | AmbiguousName | undefined => {
  const [first, ...more] = found
  return more.length > 0 ? { candidates: found } : first
}
