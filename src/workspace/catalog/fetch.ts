import { Abort, type Signal } from '../../protocol/cancellation.ts'
import { ERRORS, RpcFailure, rpcError } from '../../protocol/errors.ts'
import type { Caller, Dispatch, Peer } from '../../protocol/exchange.ts'
import { isModern, type Revision } from '../../protocol/revisions.ts'
import { sendRequest } from '../../protocol/send-request.ts'
import { within } from '../../std/time.ts'
import type { Json } from '../../wire/json/json.ts'
import { trimTool } from '../budget/trim-tool.ts'
import type { Member } from '../member.ts'
import { showOverlay } from '../policy/overlays.ts'
import { usableTool } from '../routing/call-headers.ts'
import type { FetchResult } from './cache-entry.ts'
import { LIST_KINDS, type ListKind } from './list-kinds.ts'
import { EMPTY_READING, type ListReading, readList, type ShowItem } from './read-list.ts'

const PING_MS = 500 // even a server without `ping` answers it with an error
const LONGEST_TTL_MS = 86_400_000

/** The answer of a server to `server/discover`, in the server's revision. */
export interface Discovery {
  readonly revision: Revision
  readonly result: Json
}

/** One list of a server, in the server's revision. */
export interface FetchedList {
  readonly revision: Revision
  readonly reading: ListReading
}

/** The caller in whose name lists are fetched. An anonymous caller's fetch uses no session of its client. */
export const fetchingCaller = (caller: Caller, isForSession: boolean): Caller => ({
  ...caller,
  session: caller.principal === undefined && !isForSession ? undefined : caller.session,
  logLevel: undefined,
  headers: new Map(),
})

/** Sends a request to an open server. */
export type PeerQuery = (method: string, params?: Json) => Promise<Json>

export type PeerWork<T> = (peer: Peer, query: PeerQuery) => Promise<T>

/** Opens a server in its own revision while the work lasts; rejects and cancels it after the timeout. */
export const withPeer = <T>(member: Member, caller: Caller, timeoutMs: number, work: PeerWork<T>): Promise<T> => {
  const abort = new Abort()
  const done = member.native.open(caller).then(async peer => {
    const release = peer.hold?.()
    const native = { ...caller, revision: peer.revision }
    try {
      return await work(peer, queryOf(peer, native, abort))
    } finally {
      release?.()
    }
  })
  return within<T, never>(timeoutMs, done, () => {
    abort.abort({ kind: 'expired' })
    throw new Error(`no answer within ${timeoutMs / 1000} s`)
  })
}

/** `native` is the caller in the peer's revision. */
export const queryOf =
  ({ dispatch }: Peer, native: Caller, signal: Signal): PeerQuery =>
  (method, params) =>
    sendRequest(rejectQuestions(dispatch), native, method, params, signal)

/** No client takes part in a fetch: a question is rejected at once, so that the server does not wait for an answer. */
const rejectQuestions =
  (dispatch: Dispatch): Dispatch =>
  exchange =>
    dispatch({
      ...exchange,
      sink: frame =>
        frame.kind === 'question' ? frame.answer({ kind: 'error', error: NO_CLIENT }) : exchange.sink(frame),
    })

export const NO_CLIENT = rpcError('methodNotFound', 'The gateway fetches a list: no client can answer questions')

export const fetchDiscovery = async (peer: Peer, query: PeerQuery): Promise<FetchResult<Discovery>> => {
  const result = (await query('server/discover')).compact() // the result is kept, the message is not
  return { value: { revision: peer.revision, result }, ...hintsIn(peer.revision, result) }
}

const hintsIn = (revision: Revision, result: Json): Omit<FetchResult<unknown>, 'value'> => ({
  ttlMs: isModern(revision) ? Math.min(LONGEST_TTL_MS, Math.max(0, result.get('ttlMs')?.asNumber() ?? 0)) : undefined,
  isPublic: isModern(revision) && result.get('cacheScope')?.isString('public') === true,
})

interface ListFetch {
  readonly show?: ShowItem | undefined // undefined: items are shown as the server sent them
  readonly kind: ListKind
  readonly peer: Peer
  readonly query: PeerQuery
  readonly discovery: Discovery | undefined
  readonly pinged: WeakSet<Peer> // sessions whose handshake is known to be processed
}

/** Fetches one list of a server; the list is empty if the server does not have the capability. */
export const fetchList = async (fetch: ListFetch): Promise<FetchResult<FetchedList>> => {
  const { show, kind, peer, query, discovery } = fetch
  const { method, capability } = LIST_KINDS[kind]
  const { revision } = peer
  if (discovery && !discovery.result.at('capabilities', capability))
    return { value: { revision, reading: EMPTY_READING }, ...hintsIn(revision, discovery.result) }
  if (!isModern(revision)) await waitForHandshake(fetch)
  const reading = await readList(kind, params => query(method, params), show).catch(emptyIfUnknown)
  const ttlMs = isModern(revision) ? Math.min(LONGEST_TTL_MS, reading.ttlMs ?? 0) : undefined
  return { value: { revision, reading }, ttlMs, isPublic: isModern(revision) && reading.isPublic }
}

/** Some servers have all their tools only after they processed the handshake; an answered ping proves that they have. */
const waitForHandshake = async ({ peer, query, pinged }: ListFetch): Promise<void> => {
  if (pinged.has(peer)) return
  pinged.add(peer)
  const ping = query('ping').catch(() => {})
  await within(PING_MS, ping, () => {})
}

const emptyIfUnknown = (error: unknown): ListReading => {
  if (error instanceof RpcFailure && error.error.code === ERRORS.methodNotFound.code) return EMPTY_READING
  throw error
}

/** How the items of a member's list are shown in its workspace. */
export const showOf =
  ({ isRemote, overlays, trim }: Pick<Member, 'isRemote' | 'overlays' | 'trim'>, kind: ListKind): ShowItem =>
  (original, native) => {
    if (kind !== 'tools') return { item: native }
    const usable = usableTool(native, isRemote)
    if (!('item' in usable)) return usable
    const trimmed = trim ? trimTool(usable.item, trim) : usable.item // before the overlay: its texts were written for here
    const overlay = overlays.get(original)
    return { item: overlay ? showOverlay(trimmed, overlay) : trimmed }
  }
