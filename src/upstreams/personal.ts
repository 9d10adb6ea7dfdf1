import type { Caller, Dispatch, Peer, Upstream } from '../protocol/exchange.ts'
import { methodRow } from '../protocol/methods.ts'
import { DISCONNECTED, UpstreamFailure } from './failures.ts'
import { createIdentity, type Purse, valuesFor } from './personal-values.ts'

/** An upstream that is there for one caller alone. */
export interface OwnUpstream extends Upstream {
  /** Whether it could be closed without anybody noticing. */
  isIdle(): boolean
}

interface Options extends Purse {
  readonly connect: (values: Readonly<Record<string, string>>) => OwnUpstream
  readonly most?: number // kept at a time, as long as some are idle
}

const MOST = 1000

/**
 * A server that is told who calls. Every caller has an upstream of his own, so that nothing can be shared: no
 * connection, no session, no finding about the server. `open` rejects with UpstreamFailure.
 */
export const connectPersonally = ({ connect, most = MOST, ...purse }: Options): Upstream => {
  const identityOf = createIdentity(purse)
  const known = new Map<string, OwnUpstream>() // whoever was used last is last
  const peers = new WeakMap<Peer, Peer>()
  const leaving = new Set<Promise<void>>()
  let closing: Promise<void> | undefined

  const ownOf = (caller: Caller): OwnUpstream => {
    if (closing) throw new UpstreamFailure(purse.name, DISCONNECTED)
    const key = identityOf(caller)
    const upstream = known.get(key) ?? connect(valuesFor(purse, caller))
    known.delete(key)
    if (known.size >= most) makeRoom()
    known.set(key, upstream)
    return upstream
  }

  const makeRoom = (): void => {
    for (const [key, upstream] of known) {
      if (!upstream.isIdle()) continue
      known.delete(key)
      const left = upstream.close().finally(() => leaving.delete(left))
      leaving.add(left)
      return
    }
  }

  const keepPrivate = (peer: Peer): Peer => {
    const own = peers.get(peer) ?? privatePeer(peer)
    peers.set(peer, own)
    return own
  }

  const close = async (): Promise<void> => {
    await Promise.allSettled([...[...known.values()].map(upstream => upstream.close()), ...leaving])
    known.clear()
  }

  return {
    open: async caller => keepPrivate(await ownOf(caller).open(caller)),
    probe: async () => (await [...known.values()].at(-1)?.probe?.()) ?? false,
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
