import { deliver } from '../protocol/deliver.ts'
import { type RpcError, RpcFailure } from '../protocol/errors.ts'
import type { Caller, Dispatch, Exchange, Frame, Peer, Upstream } from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import type { RequestTrace } from '../telemetry/request-log.ts'
import { type CountCall, OTHER_TOOL } from '../telemetry/server-calls.ts'
import { serverFaultOf } from './circuit-breaker.ts'
import { takeTurns } from './concurrency.ts'
import { afterPause, mayRepeat, pauseMs, wasNeverThere } from './retry.ts'
import type { ToolNames } from './tool-names.ts'
import type { WaitQueue } from './wait-queue.ts'

/** What a gate asks and tells about its server. */
export interface HealthMonitor {
  /** Why nobody is let through, if so. */
  readonly rejection: RpcError | undefined
  /** Settles when callers may go through after all; rejects with RpcFailure. */
  retryNow(): Promise<void>
  recordAnswer(): void
  recordFailure(error: RpcError, begun: number): void
  /** The server let a caller in, or did not for this reason. */
  recordOpen(error?: RpcError): void
  recordRetry(): void
}

interface Options {
  readonly server: string
  readonly upstream: Upstream
  readonly monitor: HealthMonitor
  readonly canRetry: boolean // what never arrived may be sent again; a process has its own restarts
  readonly queue: WaitQueue | undefined // undefined: as many calls at a time as come
  readonly count?: CountCall | undefined
  readonly tools?: ToolNames | undefined // those the server has listed
}

const LISTEN = 'subscriptions/listen'
const DISCOVER = 'server/discover'
const LIST = 'tools/list'
const CALL = 'tools/call'
const SEVERAL = 'several'

/** A request may go to several servers, such as one that sets the log level. */
const noteServer = (trace: RequestTrace, server: string): void => {
  trace.server = trace.server === undefined || trace.server === server ? server : SEVERAL
}

/** Stands before a server: lets nobody through while it is down, not too many at a time, and sees how each fared. */
export const createServerGuard = ({
  server,
  upstream,
  monitor: attendant,
  canRetry: repeats,
  queue,
  count,
  tools,
}: Options): Upstream => {
  const known = new WeakMap<Peer, Peer>() // the same peer has the same gate: others tell them apart by identity

  const open = (caller: Caller): Promise<Peer> =>
    attendant.rejection ? attendant.retryNow().then(() => openNow(caller)) : openNow(caller)

  const openNow = (caller: Caller): Promise<Peer> => {
    const begun = Date.now()
    return upstream.open(caller).then(guard, (error: unknown) => {
      if (caller.lane) throw error // who has a session and gets no further one has learned nothing of the server
      const fault = error instanceof RpcFailure ? serverFaultOf(error.error) : undefined
      if (error instanceof RpcFailure) refused(error.error, begun)
      // Nothing has been asked yet, so any call may still be made.
      if (fault && wasNeverThere(fault) && repeats && !attendant.rejection) return openAgain(caller)
      throw error
    })
  }

  const openAgain = async (caller: Caller): Promise<Peer> => {
    await new Promise(resolve => setTimeout(resolve, pauseMs(Math.random())))
    if (attendant.rejection) throw new RpcFailure(attendant.rejection)
    attendant.recordRetry()
    const begun = Date.now()
    try {
      return guard(await upstream.open(caller))
    } catch (error) {
      if (error instanceof RpcFailure) refused(error.error, begun)
      throw error
    }
  }

  const refused = (error: RpcError, begun: number): void => {
    attendant.recordOpen(error)
    attendant.recordFailure(error, begun)
  }

  const guard = (peer: Peer): Peer => {
    attendant.recordOpen()
    const guarded = known.get(peer) ?? guardOf(peer, dispatchTo(peer))
    known.set(peer, guarded)
    return guarded
  }

  const dispatchTo = (peer: Peer): Dispatch => {
    const send = (exchange: Exchange): void => observe(peer, exchange, false)
    const enter: Dispatch = queue ? takeTurns(server, queue, send) : send
    return exchange => {
      if (exchange.trace) noteServer(exchange.trace, server)
      if (exchange.kind === 'notification') return peer.dispatch(exchange)
      if (exchange.method === LISTEN) return overhear(peer, exchange)
      // A legacy session answers this from memory: it needs no turn, and says nothing about its server.
      if (exchange.method === DISCOVER && !isModern(peer.revision)) return peer.dispatch(exchange)
      const { rejection: refusal } = attendant
      if (refusal) return void deliver(exchange.sink, { kind: 'failure', error: refusal })
      enter(exchange)
    }
  }

  const finish = ({ method, params }: Exchange, frame: Frame, started: number): void => {
    if (method === LIST && frame.kind === 'result') tools?.addPage(frame.result)
    const name = method === CALL ? (params.get('name')?.asString() ?? '') : undefined
    const tool = name === undefined || tools?.has(name) ? name : OTHER_TOOL
    count?.(tool, frame.kind === 'failure', (performance.now() - started) / 1000)
  }

  const observe = (peer: Peer, exchange: Exchange, isRepeated: boolean): void => {
    const begun = Date.now()
    const started = performance.now()
    let isCounted = false // a failure follows a result that the sink could not take
    peer.dispatch({
      ...exchange,
      sink: frame => {
        if (frame.kind === 'failure') {
          const fault = serverFaultOf(frame.error)
          if (fault) attendant.recordFailure(frame.error, begun)
          else attendant.recordAnswer()
          if (fault && repeats && !isRepeated && mayRepeat(exchange.method, fault))
            return void afterPause(pauseMs(Math.random()), exchange.signal, () => repeat(peer, exchange, frame.error))
        } else if (frame.kind === 'result') attendant.recordAnswer()
        if (count && !isCounted && (frame.kind === 'result' || frame.kind === 'failure')) {
          isCounted = true
          finish(exchange, frame, started)
        }
        return exchange.sink(frame)
      },
    })
  }

  const repeat = (peer: Peer, exchange: Exchange, error: RpcError): void => {
    if (attendant.rejection) return void deliver(exchange.sink, { kind: 'failure', error })
    attendant.recordRetry()
    observe(peer, exchange, true)
  }

  /** Whatever a server says unasked is a sign of life. */
  const overhear = (peer: Peer, exchange: Exchange): void =>
    peer.dispatch({
      ...exchange,
      sink: frame => {
        if (frame.kind === 'notice') attendant.recordAnswer()
        return exchange.sink(frame)
      },
    })

  return { open, close: () => upstream.close() }
}

/** A peer with another way in; the rest is read off it whenever somebody asks, because it may change. */
const guardOf = (peer: Peer, dispatch: Dispatch): Peer => {
  const hold = peer.hold?.bind(peer)
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
