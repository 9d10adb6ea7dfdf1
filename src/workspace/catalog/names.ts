import { createHash } from 'node:crypto'
import type { NameStyle } from '../../config/snapshot.ts'

/** What one server of a workspace calls its tools or prompts. */
export interface ServerNames {
  readonly server: string
  readonly names: readonly string[]
}

const MOST = 64 // characters: more is refused by widely used model APIs
const MOST_OF_SERVER = 20
const PORTABLE = /^[A-Za-z0-9_-]+$/
const NAMESPACE = /^[a-z0-9-]{1,20}$/
const MARK = 4 // hex digits that tell two servers of equal namespaces apart
const DIGEST = 8

const digest = (digits: number, ...parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, digits)

/**
 * What stands for each server in shown names. Servers whose name can be used as it is keep it; of the others that
 * would look the same the first one of the workspace is shown plainly and the rest are marked.
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
 * The shown names of every offer, in its order. `servers` are all that the workspace is configured with: no name
 * may depend on who happens to be there.
 */
export const exposedNames = (
  style: NameStyle,
  offers: readonly ServerNames[],
  servers: readonly string[] = offers.map(({ server }) => server),
): readonly (readonly string[])[] => {
  const namespaces = namespacesOf(servers)
  const prefixed = ({ server }: ServerNames, name: string, separator: string): string =>
    portable(server, namespaces.get(server) ?? server, name, separator)
  if (style !== 'plain') {
    const separator = style === 'slash' ? '/' : '__'
    return offers.map(offer => offer.names.map(name => prefixed(offer, name, separator)))
  }
  const owners = firstOwners(offers)
  return offers.map(offer =>
    offer.names.map(name => {
      if (owners.get(name) === offer.server) return name
      const other = prefixed(offer, name, '__')
      return owners.has(other) ? hashed(offer.server, namespaces.get(offer.server) ?? '', name, '__') : other
    }),
  )
}

const firstOwners = (offers: readonly ServerNames[]): ReadonlyMap<string, string> => {
  const owners = new Map<string, string>()
  for (const { server, names } of offers) for (const name of names) if (!owners.has(name)) owners.set(name, server)
  return owners
}

const portable = (server: string, namespace: string, name: string, separator: string): string => {
  const shown = `${namespace}${separator}${name}`
  return shown.length <= MOST && PORTABLE.test(name) ? shown : hashed(server, namespace, name, separator)
}

/** The hash makes it different from every other; the tail lets a person see what it is. */
const hashed = (server: string, namespace: string, name: string, separator: string): string => {
  const head = `${namespace}${separator}${digest(DIGEST, server, name)}_`
  const tail = [...name].map(character => (PORTABLE.test(character) ? character : '_'))
  return head + tail.slice(-(MOST - head.length)).join('')
}

const SEPARATORS = ['__', '/']

/** What follows the server in `<server>__<name>` or `<server>/<name>`; undefined for any other name. */
export const withoutServer = (server: string, name: string): string | undefined => {
  if (!name.startsWith(server)) return undefined
  const separator = SEPARATORS.find(between => name.startsWith(between, server.length))
  const bare = separator === undefined ? '' : name.slice(server.length + separator.length)
  return bare === '' ? undefined : bare
}
