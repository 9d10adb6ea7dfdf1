import type { Exchange, Peer } from '../../protocol/exchange.ts'
import type { Pooled } from './pool.ts'

const UNUSED_MS = 30_000 // for the caller to send its first request; it may have left meanwhile

/**
 * Lends a session to one anonymous caller, and closes it when nothing is under way any more. One request of the client
 * may become several requests here (a log level, then the call), with a listener meanwhile.
 */
export const leaseSession = (session: Pooled): Peer => {
  const subscribed = new Set<string>() // URIs of resources
  let underWay = 0
  const unused = setTimeout(() => void session.close(), UNUSED_MS)
  unused.unref()

  const closeIfUnused = (): void => {
    setImmediate(() => {
      if (underWay === 0 && subscribed.size === 0) void session.close()
    })
  }

  /** Counts one use; the returned function ends it, once. */
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

  const track = (exchange: Exchange): Exchange => {
    const release = hold()
    exchange.signal.onAbort(release)
    return {
      ...exchange,
      sink: frame => {
        const isFinal = frame.kind === 'result' || frame.kind === 'failure'
        if (frame.kind === 'result') noteSubscription(exchange)
        const waiting = exchange.sink(frame)
        if (isFinal) release()
        return waiting
      },
    }
  }

  const noteSubscription = ({ method, params }: Exchange): void => {
    const uri = params.get('uri')?.asString() ?? ''
    if (method === 'resources/subscribe') subscribed.add(uri)
    else if (method === 'resources/unsubscribe') subscribed.delete(uri)
  }

  const dispatch = (exchange: Exchange): void => {
    clearTimeout(unused)
    const isListen = exchange.method === 'subscriptions/listen'
    if (exchange.kind === 'request' && !isListen) return session.dispatch(track(exchange))
    session.dispatch(exchange)
    if (exchange.kind === 'notification') return closeIfUnused()
    exchange.signal.onAbort(() => {
      subscribed.clear() // no listener is left for their updates
      closeIfUnused()
    })
  }

  const { revision, asks, correlates, runsTasks } = session
  return { revision, asks, correlates, runsTasks, dispatch, hold }
}
