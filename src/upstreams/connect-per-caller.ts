import type { Caller, Dispatch, Peer, Upstream } from '../protocol/exchange.ts'
import { methodInfo } from '../protocol/methods.ts'
import { withDispatch } from '../protocol/with-dispatch.ts'
import { type CallerCredentials, createCallerKey, credentialsFor } from './caller-credentials.ts'
import { DISCONNECTED, UpstreamFailure } from './failures.ts'

/** The upstream of one caller. */
export interface CallerUpstream extends Upstream {
  /** Whether it can be closed without an effect on any call. */
  isIdle(): boolean
}

interface PerCallerOptions extends CallerCredentials {
  readonly connect: (credentials: Readonly<Record<string, string>>, caller: Caller) => CallerUpstream
  readonly limit?: number // upstreams kept; more while all are in use
}

const LIMIT = 1000
const GRACE_MS = 1000 // for a caller that got a peer to send its request

/** The upstreams of all callers. */
interface PerCallerUpstream extends Upstream {
  /** Closes what a principal has opened: its credentials are no longer valid. Undefined: what all of them have. */
  disconnect(principal: string | undefined): void
}

interface CallerEntry {
  readonly principal: string | undefined
  readonly upstream: CallerUpstream
  opening: number // calls of `open` that are not settled
  openedAt: number // when `open` last returned a peer
}

/**
 * Connects to a server with the credentials of each caller. Every caller has an upstream of its own, so that callers share
 * no connection, no session and no knowledge about the server. `open` rejects with UpstreamFailure.
 */
export const connectPerCaller = ({ connect, limit = LIMIT, ...server }: PerCallerOptions): PerCallerUpstream => {
  const keyOf = createCallerKey(server)
  const entries = new Map<string, CallerEntry>() // the most recently used last
  const peers = new WeakMap<Peer, Peer>()
  const closingEntries = new Set<Promise<void>>()
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
    const upstream = connect(credentialsFor(server, caller), caller)
    if (entries.size >= limit) evictIdle()
    return { principal: caller.principal, upstream, opening: 0, openedAt: 0 }
  }

  /** May evict several: there are more than the limit if none was idle before. */
  const evictIdle = (): void => {
    const recent = Date.now() - GRACE_MS
    for (const [key, { upstream, opening, openedAt }] of entries) {
      if (opening > 0 || openedAt > recent || !upstream.isIdle()) continue
      closeEntry(key, upstream)
      if (entries.size < limit) return
    }
  }

  const closeEntry = (key: string, upstream: CallerUpstream): void => {
    entries.delete(key)
    const closed = upstream.close().finally(() => closingEntries.delete(closed))
    closingEntries.add(closed)
  }

  const disconnect = (principal: string | undefined): void => {
    for (const [key, entry] of entries)
      if (principal === undefined || entry.principal === principal) closeEntry(key, entry.upstream)
  }

  const open = (caller: Caller, sessionIndex?: number): Promise<Peer> => {
    let entry: CallerEntry
    try {
      entry = entryOf(caller)
    } catch (error) {
      return Promise.reject(error)
    }
    entry.opening++
    const opened = (): void => {
      entry.opening--
      entry.openedAt = Date.now()
    }
    return entry.upstream.open(caller, sessionIndex).then(
      peer => {
        opened()
        return privateOf(peer)
      },
      (error: unknown) => {
        opened()
        // One that was disconnected meanwhile is replaced by another.
        if (closing || entries.get(keyOf(caller)) === entry) throw error
        return open(caller, sessionIndex)
      },
    )
  }

  const knownPeer = (caller: Caller): Peer | undefined => {
    if (closing) return undefined
    const key = keyOf(caller)
    const entry = entries.get(key)
    const peer = entry?.upstream.knownPeer?.(caller)
    if (!entry || !peer) return undefined
    entries.delete(key)
    entries.set(key, entry)
    entry.openedAt = Date.now()
    return privateOf(peer)
  }

  const privateOf = (peer: Peer): Peer => {
    const known = peers.get(peer) ?? makePrivate(peer)
    peers.set(peer, known)
    return known
  }

  const sharedKey = (caller: Caller): string | undefined => {
    try {
      return entryOf(caller).upstream.sharedKey?.(caller)
    } catch {
      return undefined // without credentials: `open` tells why
    }
  }

  const runsFor = (caller: Caller): boolean => entries.get(keyOf(caller))?.upstream.runsFor?.(caller) === true

  const close = async (): Promise<void> => {
    await Promise.allSettled([...[...entries.values()].map(({ upstream }) => upstream.close()), ...closingEntries])
    entries.clear()
  }

  return {
    open,
    knownPeer,
    sharedKey,
    disconnect,
    runsFor,
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
