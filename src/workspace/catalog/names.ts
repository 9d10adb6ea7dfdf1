import { createHash } from 'node:crypto'
import { DEFAULT_NAME_LENGTH, type NameStyle } from '../../config/snapshot.ts'
import type { Member } from '../member.ts'

/** The names of one server's tools or prompts. */
export interface ServerNames {
  readonly server: string
  readonly names: readonly string[]
}

const MOST_OF_SERVER = 20
const PORTABLE = /^[A-Za-z0-9_-]+$/
const NAMESPACE = /^[a-z0-9-]{1,20}$/
const MARK = 4 // hex digits that distinguish two servers of equal namespaces
const DIGEST = 8

const digest = (digits: number, ...parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, digits)

/**
 * The prefix of each server in exposed names. A server whose name is a valid namespace keeps it; of the others with equal
 * namespaces the first one of the workspace has the plain form, the rest a hash.
 */
export const namespacesOf = (servers: readonly string[]): ReadonlyMap<string, string> => {
  const found = new Map(servers.filter(server => NAMESPACE.test(server)).map(server => [server, server]))
  const taken = new Set(found.values())
  for (const server of servers) {
    if (found.has(server)) continue
    const plain = slug(server, MOST_OF_SERVER)
    const marked = [slug(server, MOST_OF_SERVER - MARK - 1), digest(MARK, server)].filter(part => part !== '').join('-')
    const free = [plain, marked].find(candidate => candidate !== '' && !taken.has(candidate))
    const namespace = free ?? digest(MOST_OF_SERVER, server)
    taken.add(namespace)
    found.set(server, namespace)
  }
  return found
}

const slug = (server: string, most: number): string =>
  server
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, most)
    .replace(/-$/, '')

/**
 * The exposed names of every offer, in its order. `servers` are all of the workspace's configuration: no name may depend on
 * which servers are connected. `most` characters; undefined: 64, and names without a prefix stay as they are.
 */
export const exposedNames = (
  style: NameStyle,
  offers: readonly ServerNames[],
  servers: readonly string[] = offers.map(({ server }) => server),
  most?: number | undefined,
): readonly (readonly string[])[] => {
  const namespaces = namespacesOf(servers)
  const length = most ?? DEFAULT_NAME_LENGTH
  const prefixed = ({ server }: ServerNames, name: string, separator: string): string =>
    portable(server, namespaces.get(server) ?? server, name, separator, length)
  if (style !== 'plain') {
    const separator = style === 'slash' ? '/' : '__'
    return offers.map(offer => offer.names.map(name => prefixed(offer, name, separator)))
  }
  const owners = firstOwners(offers)
  return offers.map(offer =>
    offer.names.map(name => {
      if (owners.get(name) === offer.server && name.length <= (most ?? name.length)) return name
      const other = prefixed(offer, name, '__')
      return owners.has(other) ? hashed(offer.server, namespaces.get(offer.server) ?? '', name, '__', length) : other
    }),
  )
}

const firstOwners = (offers: readonly ServerNames[]): ReadonlyMap<string, string> => {
  const owners = new Map<string, string>()
  for (const { server, names } of offers) for (const name of names) if (!owners.has(name)) owners.set(name, server)
  return owners
}

const portable = (server: string, namespace: string, name: string, separator: string, most: number): string => {
  const exposed = `${namespace}${separator}${name}`
  return exposed.length <= most && PORTABLE.test(name) ? exposed : hashed(server, namespace, name, separator, most)
}

/** The hash makes the name unique; the end of the original name lets a person recognize it. */
const hashed = (server: string, namespace: string, name: string, separator: string, most: number): string => {
  const head = `${namespace}${separator}${digest(DIGEST, server, name)}_`
  const tail = [...name].map(character => (PORTABLE.test(character) ? character : '_'))
  return head + tail.slice(-(most - head.length)).join('')
}

const SEPARATORS = ['__', '/']

/** The name after the server in `<server>__<name>` or `<server>/<name>`; undefined for any other name. */
export const withoutServer = (server: string, name: string): string | undefined => {
  if (!name.startsWith(server)) return undefined
  const separator = SEPARATORS.find(between => name.startsWith(between, server.length))
  const bare = separator === undefined ? '' : name.slice(server.length + separator.length)
  return bare === '' ? undefined : bare
}

/** A bare name that several servers have. */
export interface AmbiguousName<T> {
  readonly candidates: readonly T[]
}

interface NamedItem {
  readonly member: Member
  readonly original: string
}

type FindByName<T> = (name: string) => T | AmbiguousName<T> | undefined

/**
 * Makes the function that finds a tool or prompt by any form of its name. `exposed` has the items by their exposed names;
 * the index of the other forms is built when a caller first uses one. `servers` are all of the workspace's configuration.
 */
export const createFinder = <T extends NamedItem>(
  exposed: ReadonlyMap<string, T>,
  servers: readonly string[],
): FindByName<T> => {
  let findOther: FindByName<T> | undefined
  return name => {
    const item = exposed.get(name)
    if (item) return item
    findOther ??= createOtherFinder(exposed.values(), servers)
    return findOther(name)
  }
}

const createOtherFinder = <T extends NamedItem>(items: Iterable<T>, servers: readonly string[]): FindByName<T> => {
  const byName = new Map<string, T[]>()
  for (const item of items) {
    const overlaid = item.member.overlays.get(item.original)?.name ?? item.original
    for (const name of new Set([item.original, overlaid])) {
      const others = byName.get(name)
      if (others) others.push(item)
      else byName.set(name, [item])
    }
  }
  const byServerName = serversByName(servers)
  const withPrefix = (name: string): readonly T[] =>
    splitName(name, byServerName).flatMap(split =>
      (byName.get(split.name) ?? []).filter(({ member }) => member.server === split.server),
    )
  return name => choose(byName.get(name) ?? []) ?? choose(withPrefix(name))
}

const choose = <T>(found: readonly T[]): T | AmbiguousName<T> | undefined => {
  const [first, ...more] = found
  return more.length > 0 ? { candidates: found } : first
}

/** Servers by their names and by their namespaces. */
export const serversByName = (servers: readonly string[]): ReadonlyMap<string, string> => {
  const namespaces = namespacesOf(servers)
  return new Map([
    ...servers.map(server => [namespaces.get(server) ?? server, server] as const),
    ...servers.map(server => [server, server] as const),
  ])
}

/** All ways to read a name as a server, a separator and the server's own name for the item. */
export const splitName = (
  name: string,
  servers: ReadonlyMap<string, string>,
): readonly { server: string; name: string }[] =>
  [...name.matchAll(/__|\//g)].flatMap(({ index, 0: separator }) => {
    const server = servers.get(name.slice(0, index))
    const rest = name.slice(index + separator.length)
    return server === undefined || rest === '' ? [] : [{ server, name: rest }]
  })
