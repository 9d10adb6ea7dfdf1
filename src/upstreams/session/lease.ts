import type { Exchange, Peer } from '../../protocol/exchange.ts'
import type { Pooled } from './pool.ts'

const LISTEN = 'subscriptions/listen'
const UNUSED_MS = 30_000 // for its caller to send a first request; one that left meanwhile never does

/**
 * A session for one caller nobody knows: it closes when nothing is under way any more. One exchange may become
 * several requests on the way down (a log level, then the call), and whoever sends them may listen meanwhile.
 */
export const leaseOf = (session: Pooled): Peer => {
  const watched = new Set<string>() // resources whose updates somebody waits for
  let underWay = 0
  const unused = setTimeout(() => void session.close(), UNUSED_MS)
  unused.unref()

  const closeIfUnused = (): void => {
    setImmediate(() => {
      if (underWay === 0 && watched.size === 0) void session.close()
    })
  }

  const follow = (exchange: Exchange): Exchange => {
    let isOver = false
    const over = (): void => {
      if (isOver) return
      isOver = true
      underWay--
      closeIfUnused()
    }
    underWay++
    exchange.signal.onAbort(over)
    return {
      ...exchange,
      sink: frame => {
        const isFinal = frame.kind === 'result' || frame.kind === 'failure'
        if (frame.kind === 'result') remember(exchange)
        const waiting = exchange.sink(frame)
        if (isFinal) over()
        return waiting
      },
    }
  }

  const remember = ({ method, params }: Exchange): void => {
    const uri = params.get('uri')?.asString() ?? ''
    if (method === 'resources/subscribe') watched.add(uri)
    else if (method === 'resources/unsubscribe') watched.delete(uri)
  }

  const dispatch = (exchange: Exchange): void => {
    clearTimeout(unused)
    if (exchange.kind === 'request' && exchange.method !== LISTEN) return session.dispatch(follow(exchange))
    session.dispatch(exchange)
    if (exchange.kind === 'notification') return closeIfUnused()
    exchange.signal.onAbort(() => {
      watched.clear() // nobody is left to hear of them
      closeIfUnused()
    })
  }

  const hold = (): (() => void) => {
    let isHeld = true
    clearTimeout(unused)
    underWay++
    return () => {
      if (!isHeld) return
      isHeld = false
      underWay--
      closeIfUnused()
    }
  }

  return { revision: session.revision, asks: session.asks, correlates: session.correlates, dispatch, hold }
}
