import { Abort } from '../../protocol/cancellation.ts'
import type { Caller, Peer } from '../../protocol/exchange.ts'
import type { Revision } from '../../protocol/revisions.ts'
import { within } from '../../std/time.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import { type Discovery, fetchList, queryOf, showOf } from './fetch.ts'
import type { CacheHints } from './freshness.ts'
import { ALL_LIST_KINDS, type ListKind } from './list-kinds.ts'
import { createMemberList, type MemberItem, type MemberList } from './member-list.ts'

/** One list of a server, as it was sent to the gateway itself. */
export interface LearntList {
  readonly items: readonly Pick<MemberItem, 'original' | 'native'>[]
  readonly hints?: CacheHints | undefined // undefined: it was read before the gateway was started
  readonly rest?: Json | undefined // the other members of the result; undefined: items were left out, or it is not known
}

/**
 * What a server answers to the gateway itself, which has no credentials of a caller. It serves every caller until the
 * caller's own fetch: see docs/decisions/0035-the-first-list-is-what-the-gateway-learnt.md for why that is safe.
 */
export interface LearntServer {
  readonly revision: Revision
  readonly discovery: Json // the result of `server/discover`
  readonly lists: Readonly<Partial<Record<ListKind, LearntList>>> // without those that could not be read
}

/** What a server may shape its lists by. */
export type LearntClient = Pick<Caller, 'revision' | 'capabilities'>

/** What a server that is a process lists to clients with capabilities, which the gateway itself has none of. */
export interface LearntByClient {
  /** By `publicKeyOf` such a client; undefined: that is not known. */
  get(publicKey: string): LearntServer | undefined
  /** Reads it in the background, once, in a process that ends then. */
  learn(client: LearntClient): void
}

/** The place where the gateway keeps what it has learnt of one server. */
export interface LearntSource {
  get(): LearntServer | undefined
  readonly byClient?: LearntByClient | undefined // undefined: each client's own fetch shows it
  /** Calls the listener whenever more was learnt, until the returned function is called. */
  onLearnt(listener: () => void): () => void
}

const TIMEOUT_MS = 60_000

/** Reads everything that a server lists, on a peer that no client uses; a list that fails is left out. */
export const learnServer = (peer: Peer, self: Caller, discovery: Json): Promise<LearntServer> => {
  const abort = new Abort()
  const query = queryOf(peer, { ...self, revision: peer.revision }, abort)
  const { revision } = peer
  const pinged = new WeakSet<Peer>()
  const known: Discovery = { revision, result: discovery }
  const read = async (kind: ListKind): Promise<[ListKind, LearntList][]> => {
    try {
      const { value, ttlMs } = await fetchList({ kind, peer, query, discovery: known, pinged })
      const items = value.reading.items.map(({ original, native }) => ({ original, native }))
      const hints = { fetchedAt: Date.now(), ttlMs, isPublic: false }
      return [[kind, { items, hints, rest: value.reading.faults.length === 0 ? value.reading.rest : undefined }]]
    } catch {
      return []
    }
  }
  /** One after the other: the server may have a limit of concurrent requests. */
  const readAll = async (): Promise<LearntServer> => {
    const lists: [ListKind, LearntList][] = []
    for (const kind of ALL_LIST_KINDS) lists.push(...(await read(kind)))
    return { revision, discovery: discovery.compact(), lists: Object.fromEntries(lists) }
  }
  return within<LearntServer, never>(TIMEOUT_MS, readAll(), () => {
    abort.abort({ kind: 'expired' })
    throw new Error(`no lists within ${TIMEOUT_MS / 1000} s`)
  })
}

/** The list of a member with the workspace's overlays. */
export const showLearnt = (member: Member, kind: ListKind, revision: Revision, { items }: LearntList): MemberList => {
  const show = showOf(member, kind)
  const shown = items.flatMap(({ original, native }): MemberItem[] => {
    const usable = show(original, native)
    return 'item' in usable ? [{ original, native, shown: usable.item }] : []
  })
  return createMemberList(kind, revision, { items: shown })
}

/** Whether two readings of a server show the same. */
export const isSameServer = (a: LearntServer, b: LearntServer): boolean =>
  a.revision === b.revision &&
  a.discovery.toBytes().equals(b.discovery.toBytes()) &&
  ALL_LIST_KINDS.every(kind => isSameList(a.lists[kind], b.lists[kind]))

const isSameList = (a: LearntList | undefined, b: LearntList | undefined): boolean => {
  if (!a || !b) return a === b
  return (
    a.items.length === b.items.length &&
    a.items.every(({ native }, at) => native.toBytes().equals(b.items[at]?.native.toBytes() ?? NOTHING))
  )
}

const NOTHING = Buffer.alloc(0)
