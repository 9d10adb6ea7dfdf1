import { Abort } from '../../protocol/cancellation.ts'
import { RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Peer } from '../../protocol/exchange.ts'
import { ask } from '../../protocol/listing.ts'
import { isModern, type Revision } from '../../protocol/revisions.ts'
import type { Json } from '../../wire/json/json.ts'
import type { Member } from '../member.ts'
import { showOverlay } from '../policy/overlays.ts'
import { type UsableTool, usableTool } from '../routing/param-check.ts'
import type { FetchResult } from './cache-entry.ts'
import { LIST_KINDS } from './kinds.ts'
import { type ListReading, readList } from './read-list.ts'
import type { ListKind } from './view.ts'

const METHOD_NOT_FOUND = -32601
const FENCE_MS = 500 // for a ping, which even an error answers
const LONGEST_MS = 86_400_000

/** Who a server says it is, in its own words. */
export interface Discovery {
  readonly revision: Revision
  readonly result: Json
}

/** What a server told in answer to one question, and in which revision. */
export interface FetchedList {
  readonly revision: Revision
  readonly reading: ListReading
}

/** Somebody in whose name a server is asked; one nobody knows gets a session of its own, not that of his client. */
export const fetchingCaller = (caller: Caller, isApart: boolean): Caller => ({
  ...caller,
  session: caller.principal === undefined && !isApart ? undefined : caller.session,
  logLevel: undefined,
  headers: new Map(),
})

/** What is done with a server once it is open. */
export type PeerWork<T> = (peer: Peer, query: PeerQuery) => Promise<T>

/** Opens a server in its own revision for as long as the work takes; gives up after a while. */
export const withPeer = async <T>(member: Member, lister: Caller, giveUpMs: number, work: PeerWork<T>): Promise<T> => {
  const abort = new Abort()
  const late = new Promise<never>((_, reject) => {
    abort.onAbort(() => reject(new Error(`no answer within ${giveUpMs / 1000} s`)))
  })
  const timer = setTimeout(() => abort.abort({ kind: 'expired' }), giveUpMs)
  timer.unref()
  const visited = member.native.open(lister).then(async peer => {
    const release = peer.hold?.()
    const caller = { ...lister, revision: peer.revision }
    try {
      return await work(peer, (method, params) => ask(unasked(peer.dispatch), caller, method, params, abort))
    } finally {
      release?.()
    }
  })
  visited.catch(() => {}) // whoever came too late to hear of it needs not
  return Promise.race([visited, late]).finally(() => clearTimeout(timer))
}

/** Nobody is there to be asked back; a server that waits for an answer must not wait for long. */
const unasked =
  (dispatch: Dispatch): Dispatch =>
  exchange =>
    dispatch({
      ...exchange,
      sink: frame =>
        frame.kind === 'question' ? frame.answer({ kind: 'error', error: NOBODY }) : exchange.sink(frame),
    })

const NOBODY = rpcError('methodNotFound', 'Nobody can be asked while a list is made')

/** Asks a server something. */
export type PeerQuery = (method: string, params?: Json) => Promise<Json>

/** Asks a server who it is. */
export const fetchDiscovery = async (peer: Peer, query: PeerQuery): Promise<FetchResult<Discovery>> => {
  const result = (await query('server/discover')).compact() // it is kept, the message is not
  return { value: { revision: peer.revision, result }, ...hintsIn(peer.revision, result) }
}

const hintsIn = (revision: Revision, result: Json): Omit<FetchResult<unknown>, 'value'> => ({
  ttlMs: isModern(revision) ? Math.min(LONGEST_MS, Math.max(0, result.get('ttlMs')?.asNumber() ?? 0)) : undefined,
  isPublic: isModern(revision) && result.get('cacheScope')?.isString('public') === true,
})

const NOTHING: ListReading = { items: [], faults: [], ttlMs: undefined, isPublic: false, isComplete: true }

/** Reads one list of a server; one that does not offer it has an empty one. */
export const fetchList = async (
  member: Member,
  kind: ListKind,
  peer: Peer,
  query: PeerQuery,
  introduction: Discovery | undefined,
): Promise<FetchResult<FetchedList>> => {
  const { method, capability } = LIST_KINDS[kind]
  const { revision } = peer
  if (introduction && !introduction.result.at('capabilities', capability))
    return { value: { revision, reading: NOTHING }, ...hintsIn(revision, introduction.result) }
  await fence(peer, query)
  const reading = await readList(kind, params => query(method, params), showOf(member, kind)).catch(lacking)
  const ttlMs = isModern(revision) ? Math.min(LONGEST_MS, reading.ttlMs ?? 0) : undefined
  return { value: { revision, reading }, ttlMs, isPublic: isModern(revision) && reading.isPublic }
}

/** A server that does not know the method has nothing of the kind. */
const lacking = (error: unknown): ListReading => {
  if (error instanceof RpcFailure && error.error.code === METHOD_NOT_FOUND) return NOTHING
  throw error
}

const showOf =
  ({ isRemote, overlays }: Member, kind: ListKind) =>
  (original: string, own: Json): UsableTool => {
    if (kind !== 'tools') return { item: own }
    const usable = usableTool(own, isRemote)
    const overlay = overlays.get(original)
    return overlay && 'item' in usable ? { item: showOverlay(usable.item, overlay) } : usable
  }

const fenced = new WeakSet<Peer>()

/** Servers offer some things only once they have dealt with the handshake: a ping that is answered tells that they have. */
const fence = async (peer: Peer, query: PeerQuery): Promise<void> => {
  if (isModern(peer.revision) || fenced.has(peer)) return
  fenced.add(peer)
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, FENCE_MS)
  })
  const answered = query('ping').then(
    () => {},
    () => {},
  )
  await Promise.race([answered, late]).finally(() => clearTimeout(timer))
}
