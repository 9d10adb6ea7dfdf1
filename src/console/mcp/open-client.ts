import { META } from '../../protocol/meta.ts'
import { isModern, OLDEST, type Revision } from '../../protocol/revisions.ts'
import { ChannelTransport } from './channel-transport.ts'
import { LegacyClient } from './legacy-client.ts'
import type { McpClient, McpClientEvents, McpEndpoint, ReceivedResult } from './mcp-client.ts'
import { isObject, type JsonObject } from './messages.ts'
import { StatelessClient } from './stateless-client.ts'
import { StreamableTransport } from './streamable-transport.ts'

/** A client of this revision, with the transport that the revision introduced. */
export const createMcpClient = (revision: Revision, endpoint: McpEndpoint, events: McpClientEvents): McpClient => {
  if (isModern(revision)) return new StatelessClient(endpoint, events)
  const transport = () => (revision === OLDEST ? new ChannelTransport(endpoint) : new StreamableTransport(endpoint))
  return new LegacyClient(revision, endpoint, events, transport)
}

/** How the messages of a revision travel, for the user. */
export const transportName = (revision: Revision): string =>
  isModern(revision) ? 'stateless HTTP' : revision === OLDEST ? 'HTTP+SSE' : 'Streamable HTTP with a session'

const MOST_PAGES = 1000
const MOST_ITEMS = 100_000

type SendRequest = (method: string, params: JsonObject) => Promise<ReceivedResult>

/** Items of a list, and the server of each at the same place, where the gateway has said it. */
interface ListedItems {
  readonly items: readonly JsonObject[]
  readonly servers: readonly (string | undefined)[]
}

/** One page of a list; `next` is the cursor of the following one. */
export const fetchPage = async (
  send: SendRequest,
  method: string,
  member: string,
  cursor: string | undefined,
): Promise<
  ListedItems & {
    readonly meta: JsonObject | undefined
    readonly next: string | undefined
  }
> => {
  const { result } = await send(method, cursor === undefined ? {} : { cursor })
  const { [member]: list, nextCursor, _meta: meta } = result
  const named = isObject(meta) ? meta[META.servers] : undefined
  const listed = (Array.isArray(list) ? list : []).flatMap((item: unknown, at) => {
    const server: unknown = Array.isArray(named) ? named[at] : undefined
    return isObject(item) ? [{ item, server: typeof server === 'string' ? server : undefined }] : []
  })
  return {
    items: listed.map(({ item }) => item),
    servers: listed.map(({ server }) => server),
    meta: isObject(meta) ? meta : undefined,
    next: typeof nextCursor === 'string' && nextCursor !== cursor ? nextCursor : undefined,
  }
}

/** All items of a list, page by page; `onPage` has those that came so far. */
export const fetchAll = async (
  send: SendRequest,
  method: string,
  member: string,
  onPage: (items: readonly JsonObject[], servers: ListedItems['servers']) => void,
): Promise<
  ListedItems & {
    readonly meta: JsonObject | undefined
    readonly isCut: boolean
  }
> => {
  const items: JsonObject[] = []
  const servers: (string | undefined)[] = []
  let cursor: string | undefined
  let meta: JsonObject | undefined
  for (let page = 0; page < MOST_PAGES && items.length < MOST_ITEMS; page++) {
    const read = await fetchPage(send, method, member, cursor)
    items.push(...read.items)
    servers.push(...read.servers)
    meta = read.meta ?? meta
    cursor = read.next
    if (cursor === undefined) return { items, servers, meta, isCut: false }
    onPage([...items], [...servers])
  }
  return { items, servers, meta, isCut: true }
}
