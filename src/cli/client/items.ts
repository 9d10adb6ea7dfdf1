import { nearest } from '../../config/problems.ts'
import { META } from '../../protocol/meta.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Client } from './client-command.ts'
import type { ServerConnection } from './connection.ts'
import { ClientError, EXIT } from './exit-codes.ts'
import { type TargetSource, unknownServer } from './sources.ts'

/** The lists of MCP as commands show them. */
export const LISTS = {
  tools: { method: 'tools/list', member: 'tools', key: 'name', capability: 'tools', one: 'tool' },
  prompts: { method: 'prompts/list', member: 'prompts', key: 'name', capability: 'prompts', one: 'prompt' },
  resources: { method: 'resources/list', member: 'resources', key: 'uri', capability: 'resources', one: 'resource' },
  templates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    key: 'uriTemplate',
    capability: 'resources',
    one: 'template',
  },
} as const

export type ListName = keyof typeof LISTS

/** A tool, prompt, resource or template, and where it was found. */
export interface Item {
  readonly server: string | undefined // undefined: the target is one server, or the daemon does not say
  readonly name: string // at its server
  readonly sentName: string // in requests
  readonly definition: Json // as it was received
  readonly session: ServerConnection
}

/** The name that users type: `server/name`. */
export const labelOf = ({ server, name }: Pick<Item, 'server' | 'name'>): string =>
  server === undefined ? name : `${server}/${name}`

/** Reads a list of one connection; empty if the server does not have that list. */
const listItemsOf = async (
  source: TargetSource,
  session: ServerConnection,
  list: ListName,
  isWhole: boolean,
): Promise<readonly Item[]> => {
  const { method, member, key, capability } = LISTS[list]
  const isWorkspace = source.connection.kind === 'daemon'
  if (!isWorkspace && !(await session.discover()).get('capabilities')?.has(capability)) return []
  const meta = {
    ...((source.servers.length > 1 || (isWorkspace && list === 'tools')) && { [META.servers]: true }),
    ...(isWorkspace && list === 'tools' && { [META.allTools]: isWhole }),
  }
  const listed = await session.list(method, member, meta).catch((error: unknown) => {
    if (list === 'templates' && error instanceof ClientError && error.code === EXIT.protocol) return [] // many servers lack it
    throw error
  })
  return listed.map(({ definition, server: named }) => {
    const sentName = definition.get(key)?.asString() ?? ''
    const origin = definition.at('_meta', META.origin)
    const only = source.servers.length === 1 ? source.servers[0] : undefined
    const server = origin?.get('server')?.asString() ?? (named === '' ? undefined : (named ?? only)) // empty: of the gateway
    return { server, name: origin?.get('name')?.asString() ?? sentName, sentName, definition, session }
  })
}

/** Lists that were read, and the errors of the connections that failed. */
export interface Found {
  readonly items: readonly Item[]
  readonly errors: readonly ClientError[]
  readonly missing: readonly string[] // servers that the daemon cannot list yet
  readonly leftOut: number // tools that a budget leaves out
}

/** Reads lists of every connection at the same time; also tools that a budget leaves out, unless `isWhole` is false. */
export const findItems = async (
  client: Client,
  lists: readonly ListName[],
  open: (source: TargetSource) => Promise<ServerConnection> = source => client.connect(source),
  isWhole = true,
): Promise<Found> => {
  const { sources } = client
  const results = await Promise.all(
    sources.all.map(async source => {
      try {
        const session = await open(source)
        const read = await Promise.all(lists.map(list => listItemsOf(source, session, list, isWhole)))
        return { items: read.flat(), errors: [], missing: [...session.missingServers], leftOut: session.leftOut }
      } catch (error) {
        if (!(error instanceof ClientError) || error.code === EXIT.cancelled) throw error
        return { items: [], errors: [error], missing: [], leftOut: 0 }
      }
    }),
  )
  const items = results.flatMap(result => result.items)
  return {
    items:
      sources.server === undefined
        ? items
        : items.filter(({ server }) => server === undefined || server === sources.server),
    errors: results.flatMap(result => result.errors),
    missing: results.flatMap(result => result.missing),
    leftOut: results.reduce((sum, result) => sum + result.leftOut, 0),
  }
}

/** The item of that name; a ClientError lists what may have been meant. */
export const chooseItem = (
  client: Client,
  list: 'tools' | 'prompts',
  { items, errors }: Found,
  usageOf?: (item: Item) => string,
): Item => {
  const { server, item: wanted } = client.sources
  const { one } = LISTS[list]
  if (wanted === undefined) throw new ClientError(`expected the name of a ${one} after ${server}/`, EXIT.usage)
  const exact = items.filter(item => labelOf(item) === wanted || item.sentName === wanted)
  const found = exact.length > 0 ? exact : items.filter(item => item.name === wanted)
  const [first, ...others] = found
  if (first && others.length === 0) return first
  if (first) {
    const labels = found.map(labelOf).join(', ')
    throw new ClientError(`several servers have a ${one} ${JSON.stringify(wanted)}; call one of ${labels}`, EXIT.usage)
  }
  if (errors[0]) throw errors[0]
  const login = items.find(item => {
    const isAtServer = item.server === server || wanted.startsWith(`${item.server}/`)
    return isAtServer && item.definition.at('_meta', META.login)
  })
  if (login) throw new ClientError(loginHint(login), EXIT.unauthorized)
  throw new ClientError(notFound(client, one, wanted, items, usageOf), EXIT.usage)
}

const loginHint = ({ server = 'the server' }: Item): string =>
  `${server} needs a login before its tools can be used: run "dragoman login ${server}"`

const MOST_NAMED = 12

const notFound = (
  { sources }: Client,
  one: string,
  wanted: string,
  items: readonly Item[],
  usageOf?: (item: Item) => string,
): string => {
  const [prefix = '', ...rest] = wanted.split('/')
  const isPrefixed =
    sources.server === undefined && rest.length > 0 && sources.all.some(({ servers }) => servers.length > 0)
  if (isPrefixed && !items.some(({ server }) => server === prefix)) return unknownServer(prefix, sources.all).message
  const labels = items.map(labelOf)
  const near = nearest(wanted, labels)
  const meant = items.find(item => labelOf(item) === near) ?? items.find(item => nearest(wanted, [item.name]))
  const where = sources.server ?? sources.all.map(({ label }) => label).join(', ')
  const missing = `${where} has no ${one} ${JSON.stringify(wanted)}`
  if (meant) return `${missing}; did you mean ${labelOf(meant)}?${usageOf ? `\nUsage: ${usageOf(meant)}` : ''}`
  if (labels.length === 0) return `${missing}; it has none`
  const more = labels.length > MOST_NAMED ? ` and ${labels.length - MOST_NAMED} more` : ''
  return `${missing}; there are ${labels.slice(0, MOST_NAMED).join(', ')}${more}`
}
