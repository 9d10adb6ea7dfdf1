import { createHash } from 'node:crypto'
import type { ServerConfig } from '../config/snapshot.ts'
import { isRevision } from '../protocol/revisions.ts'
import { Json } from '../wire/json/json.ts'
import type { LearntList, LearntServer } from '../workspace/catalog/learnt-server.ts'
import { ALL_LIST_KINDS, LIST_KINDS, type ListKind } from '../workspace/catalog/list-kinds.ts'
import type { ClientLists } from './learnt-clients.ts'

const FORMAT = 1

/** Equal for equal entries of the configuration, and the folder they run in: what was learnt of one serves the other. */
export const fingerprintOf = (config: ServerConfig): string => {
  const folder = config.kind === 'process' ? (config.cwd ?? process.cwd()) : ''
  return createHash('sha256')
    .update(JSON.stringify([sorted(config), folder]))
    .digest('base64url')
}

const sorted = (value: unknown): unknown => {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map(sorted)
  const entries = Object.entries(value).filter(([, member]) => member !== undefined)
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, member]) => [key, sorted(member)])
}

/** What is stored of a server: as a client without capabilities sees it, and as others do. */
export interface StoredServer {
  readonly plain: LearntServer
  readonly clients: readonly ClientLists[]
}

/** The text that is stored; equal for equal lists. */
export const encodeLearnt = (fingerprint: string, plain: LearntServer, clients: readonly ClientLists[]): Buffer => {
  const others = clients.map(({ client: { revision, capabilities }, own }) => ({
    client: { revision, capabilities },
    ...(own && { own: encodeServer(own) }),
  }))
  return Json.of({ format: FORMAT, fingerprint, ...encodeServer(plain), clients: others }).toBytes()
}

const encodeServer = ({ revision, discovery, lists }: LearntServer) => {
  const kinds = ALL_LIST_KINDS.flatMap(kind => {
    const items = lists[kind]?.items
    return items ? [[kind, items.map(({ native }) => native)] as const] : []
  })
  const rest = ALL_LIST_KINDS.flatMap(kind => (lists[kind]?.rest ? [[kind, lists[kind].rest] as const] : []))
  const [listed, others] = [Object.fromEntries(kinds), Object.fromEntries(rest)]
  return { revision, discovery, lists: listed, rest: others }
}

/** Reads a stored text; a string says why it cannot be used. */
export const decodeLearnt = (fingerprint: string, bytes: Buffer): StoredServer | string => {
  let stored: Json
  try {
    stored = Json.parse(bytes)
  } catch {
    return 'it is not JSON'
  }
  const format = stored.get('format')?.asNumber()
  if (format === undefined) return 'it was not written by this program'
  if (format !== FORMAT) return `its format is ${format}, and this version reads format ${FORMAT}`
  if (!stored.get('fingerprint')?.isString(fingerprint)) return 'it belongs to another entry'
  const plain = decodeServer(stored)
  if (!plain) return 'members are missing or invalid'
  const clients = stored.get('clients')
  return { plain, clients: (clients?.kind === 'array' ? clients.elements() : []).flatMap(decodeClient) }
}

const decodeClient = (stored: Json): ClientLists[] => {
  const [revision, capabilities] = [stored.at('client', 'revision')?.asString(), stored.at('client', 'capabilities')]
  if (revision === undefined || !isRevision(revision) || !capabilities?.isObject) return []
  const own = stored.get('own')
  const lists = own && decodeServer(own)
  return own && !lists ? [] : [{ client: { revision, capabilities: capabilities.compact() }, own: lists }]
}

const decodeServer = (stored: Json): LearntServer | undefined => {
  const [revision, discovery, lists] = [
    stored.get('revision')?.asString(),
    stored.get('discovery'),
    stored.get('lists'),
  ]
  if (revision === undefined || !isRevision(revision) || !discovery?.isObject || !lists?.isObject) return undefined
  const read = ALL_LIST_KINDS.flatMap((kind): [ListKind, LearntList][] => {
    const items = lists.get(kind)
    const rest = stored.at('rest', kind)
    if (items?.kind !== 'array') return []
    return [
      [kind, { items: items.elements().flatMap(item => itemOf(kind, item)), rest: rest?.isObject ? rest : undefined }],
    ]
  })
  return { revision, discovery, lists: Object.fromEntries(read) }
}

const itemOf = (kind: ListKind, native: Json): LearntList['items'] => {
  const original = native.get(LIST_KINDS[kind].key)?.asString()
  return original === undefined ? [] : [{ original, native }]
}
