import { type Caller, type Dispatch, type Peer, type Upstream, withDispatch } from '../protocol/exchange.ts'
import { methodInfo } from '../protocol/methods.ts'
import { type CallerCredentials, createCallerKey, credentialsFor } from './caller-credentials.ts'
import { DISCONNECTED, UpstreamFailure } from './failures.ts'

/** The upstream of one caller. */
export interface CallerUpstream extends Upstream {
  /** Whether it can be closed without an effect on any call. */
  isIdle(): boolean
}

interface PerCallerOptions extends CallerCredentials {
  readonly connect: (credentials: Readonly<Record<string, string>>) => CallerUpstream
  readonly limit?: number // upstreams kept; more while all are in use
}

const LIMIT = 1000
const GRACE_MS = 1000 // for a caller that got a peer to send its request

interface CallerEntry {
  readonly upstream: CallerUpstream
  opening: number // calls of `open` that are not settled
  openedAt: number // when `open` last returned a peer
}

/**
 * Connects to a server with the credentials of each caller. Every caller has an upstream of its own, so that callers share
 * no connection, no session and no knowledge about the server. `open` rejects with UpstreamFailure.
 */
export const connectPerCaller = ({ connect, limit = LIMIT, ...server }: PerCallerOptions): Upstream => {
  const keyOf = createCallerKey(server)
  const entries = new Map<string, CallerEntry>() // the most recently used last
  const peers = new WeakMap<Peer, Peer>()
  const closingIdle = new Set<Promise<void>>()
  let closing: Promise<void> | undefined

  const entryOf = (caller: Caller): CallerEntry => {
    if (closing) throw new UpstreamFailure(server.name, DISCONNECTED)
    const key = keyOf(caller)
    const entry = entries.get(key) ?? create(caller)
    entries.delete(key)
    entries.set(key, entry)
    return entry
  }

  const create = (caller: Caller): CallerEntry => {
    const upstream = connect(credentialsFor(server, caller))
    if (entries.size >= limit) evictIdle()
    return { upstream, opening: 0, openedAt: 0 }
  }

  /** May evict several: there are more than the limit if none was idle before. */
  const evictIdle = (): void => {
    const recent = Date.now() - GRACE_MS
    for (const [key, { upstream, opening, openedAt }] of entries) {
      if (opening > 0 || openedAt > recent || !upstream.isIdle()) continue
      entries.delete(key)
      const closed = upstream.close().finally(() => closingIdle.delete(closed))
      closingIdle.add(closed)
      if (entries.size < limit) return
    }
  }

  const open = async (caller: Caller, sessionIndex?: number): Promise<Peer> => {
    const entry = entryOf(caller)
    entry.opening++
    try {
      const peer = await entry.upstream.open(caller, sessionIndex)
      const known = peers.get(peer) ?? makePrivate(peer)
      peers.set(peer, known)
      return known
    } finally {
      entry.opening--
      entry.openedAt = Date.now()
    }
  }

  const sharedKey = (caller: Caller): string | undefined => {
    try {
      return entryOf(caller).upstream.sharedKey?.(caller)
    } catch {
      return undefined // without credentials: `open` tells why
    }
  }

  const close = async (): Promise<void> => {
    await Promise.allSettled([...[...entries.values()].map(({ upstream }) => upstream.close()), ...closingIdle])
    entries.clear()
  }

  return {
    open,
    sharedKey,
    probe: async () => (await [...entries.values()].at(-1)?.upstream.probe?.()) ?? false,
    close: () => (closing ??= close()),
  }
}

/** Marks results as private: a server that knows the caller may call a result public that differs by caller. */
const makePrivate = (peer: Peer): Peer => {
  const dispatch: Dispatch = exchange => {
    if (!methodInfo(exchange.method)?.cacheable) return peer.dispatch(exchange)
    peer.dispatch({
      ...exchange,
      sink: frame => {
        const isPublic = frame.kind === 'result' && frame.result.get('cacheScope')?.isString('public')
        return exchange.sink(isPublic ? { kind: 'result', result: frame.result.with('cacheScope', 'private') } : frame)
      },
    })
  }
  return withDispatch(peer, dispatch)
}
