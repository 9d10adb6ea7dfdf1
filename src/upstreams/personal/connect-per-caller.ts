import type { Caller, Dispatch, Peer, Upstream } from '../../protocol/exchange.ts'
import { methodRow } from '../../protocol/methods.ts'
import { DISCONNECTED, UpstreamFailure } from '../failures.ts'
import { type CallerCredentials, createCallerKey, credentialsFor } from './caller-credentials.ts'

/** An upstream that is there for one caller alone. */
export interface CallerUpstream extends Upstream {
  /** Whether it could be closed without anybody noticing. */
  isIdle(): boolean
}

interface Options extends CallerCredentials {
  readonly connect: (values: Readonly<Record<string, string>>) => CallerUpstream
  readonly most?: number // kept at a time, as long as some are idle
}

const MOST = 1000
const HANDED_MS = 1000 // for whoever was given a peer to send something

/** The upstream of one caller. */
interface Own {
  readonly upstream: CallerUpstream
  openings: number // under way
  handedAt: number // when a peer of it was last given to somebody
}

/**
 * A server that is told who calls. Every caller has an upstream of his own, so that nothing can be shared: no
 * connection, no session, no finding about the server. `open` rejects with UpstreamFailure.
 */
export const connectPerCaller = ({ connect, most = MOST, ...purse }: Options): Upstream => {
  const identityOf = createCallerKey(purse)
  const known = new Map<string, Own>() // whoever was used last is last
  const peers = new WeakMap<Peer, Peer>()
  const leaving = new Set<Promise<void>>()
  let closing: Promise<void> | undefined

  const ownOf = (caller: Caller): Own => {
    if (closing) throw new UpstreamFailure(purse.name, DISCONNECTED)
    const key = identityOf(caller)
    const own = known.get(key) ?? create(caller)
    known.delete(key)
    known.set(key, own)
    return own
  }

  const create = (caller: Caller): Own => {
    const upstream = connect(credentialsFor(purse, caller))
    if (known.size >= most) makeRoom()
    return { upstream, openings: 0, handedAt: 0 }
  }

  /** There may be more than one too many: nobody may have been idle before. */
  const makeRoom = (): void => {
    const handed = Date.now() - HANDED_MS
    for (const [key, { upstream, openings, handedAt }] of known) {
      if (openings > 0 || handedAt > handed || !upstream.isIdle()) continue
      known.delete(key)
      const left = upstream.close().finally(() => leaving.delete(left))
      leaving.add(left)
      if (known.size < most) return
    }
  }

  const open = async (caller: Caller, sessionIndex?: number): Promise<Peer> => {
    const own = ownOf(caller)
    own.openings++
    try {
      return keepPrivate(await own.upstream.open(caller, sessionIndex))
    } finally {
      own.openings--
      own.handedAt = Date.now()
    }
  }

  const keepPrivate = (peer: Peer): Peer => {
    const own = peers.get(peer) ?? privatePeer(peer)
    peers.set(peer, own)
    return own
  }

  const close = async (): Promise<void> => {
    await Promise.allSettled([...[...known.values()].map(({ upstream }) => upstream.close()), ...leaving])
    known.clear()
  }

  return {
    open,
    probe: async () => (await [...known.values()].at(-1)?.upstream.probe?.()) ?? false,
    close: () => (closing ??= close()),
  }
}

/** What a server calls public is so among those it cannot tell apart; here it can. */
const privatePeer = (peer: Peer): Peer => {
  const hold = peer.hold?.bind(peer)
  const dispatch: Dispatch = exchange => {
    if (!methodRow(exchange.method)?.cacheable) return peer.dispatch(exchange)
    peer.dispatch({
      ...exchange,
      sink: frame => {
        const isPublic = frame.kind === 'result' && frame.result.get('cacheScope')?.isString('public')
        return exchange.sink(isPublic ? { kind: 'result', result: frame.result.with('cacheScope', 'private') } : frame)
      },
    })
  }
  return {
    get revision() {
      return peer.revision
    },
    get asks() {
      return peer.asks
    },
    get correlates() {
      return peer.correlates !== false
    },
    dispatch,
    ...(hold && { hold }),
  }
}
