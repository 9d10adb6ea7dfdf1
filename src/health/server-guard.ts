import { deliver } from '../protocol/deliver.ts'
import { NoAnswer, type RpcError, RpcFailure } from '../protocol/errors.ts'
import type { Caller, Dispatch, Exchange, Frame, Peer, Upstream } from '../protocol/exchange.ts'
import { withoutLoginMarks } from '../protocol/login-tool.ts'
import { methodInfo } from '../protocol/methods.ts'
import { isModern, type Revision } from '../protocol/revisions.ts'
import { withDispatch } from '../protocol/with-dispatch.ts'
import { sleep } from '../std/time.ts'
import { type CountCall, OTHER_TOOL } from '../telemetry/server-calls.ts'
import { limitConcurrency } from './concurrency.ts'
import type { HealthCheck } from './health-check.ts'
import { type ServerFault, serverFaultOf } from './state.ts'
import type { ToolNames } from './tool-names.ts'
import type { WaitQueue } from './wait-queue.ts'

/** The part of a health check that a guard reads and updates. */
type HealthMonitor = Pick<
  HealthCheck,
  'rejection' | 'retryNow' | 'recordAnswer' | 'recordFailure' | 'recordOpen' | 'recordRetry'
>

/** Answers in place of a server that wants a login of the caller first. */
export interface LoginStandIn {
  /** The peer of a caller that could not open the server; undefined: the error is about something else. */
  peerFor(caller: Caller, error: RpcError): Peer | undefined
  /** Answers a request of that revision; false: the error is the answer. */
  answer(exchange: Exchange, revision: Revision, error: RpcError): boolean
}

interface ServerGuardOptions {
  readonly server: string
  readonly upstream: Upstream
  readonly monitor: HealthMonitor
  readonly canRetry: boolean // false for a process: its supervisor restarts it
  readonly queue: WaitQueue | undefined // undefined: no concurrency limit
  readonly count?: CountCall | undefined
  readonly tools?: ToolNames | undefined // the names the server has listed
  readonly standIn?: LoginStandIn | undefined // undefined: the server never wants a login
}

const LISTEN = 'subscriptions/listen'
const DISCOVER = 'server/discover'
const LIST = 'tools/list'
const CALL = 'tools/call'
const RETRY_MS = 250

/** Wraps an upstream: rejects calls while the server is down, limits concurrent calls, retries, and records outcomes. */
export const createServerGuard = (options: ServerGuardOptions): Upstream => {
  const { server, upstream, monitor, canRetry, queue, count, tools, standIn } = options
  const guarded = new WeakMap<Peer, Peer>() // one guard for each peer: the bridge compares peers by identity

  const open = (caller: Caller, sessionIndex = 0): Promise<Peer> =>
    monitor.rejection ? monitor.retryNow().then(() => openNow(caller, sessionIndex)) : openNow(caller, sessionIndex)

  const openNow = (caller: Caller, sessionIndex: number, isRetry = false): Promise<Peer> => {
    const begun = Date.now()
    return upstream.open(caller, sessionIndex).then(guard, (error: unknown) => {
      // That a caller with a session gets no further one says nothing about the server.
      if (sessionIndex > 0 || !(error instanceof RpcFailure)) throw error
      monitor.recordOpen(error.error)
      const stands = standIn?.peerFor(caller, error.error)
      if (stands) return stands // not guarded: its answers say nothing about the server
      monitor.recordFailure(error.error, begun)
      const fault = serverFaultOf(error.error)
      // No request has been sent yet, so any call may be retried.
      if (isRetry || !fault || !isUnreachable(fault) || !canRetry || monitor.rejection) throw error
      return sleep(retryDelayMs()).then(() => {
        if (monitor.rejection) throw new RpcFailure(monitor.rejection)
        monitor.recordRetry()
        return openNow(caller, sessionIndex, true)
      })
    })
  }

  const knownPeer = (caller: Caller): Peer | undefined => {
    const peer = monitor.rejection ? undefined : upstream.knownPeer?.(caller)
    return peer && guard(peer)
  }

  const guard = (peer: Peer): Peer => {
    monitor.recordOpen()
    const known = guarded.get(peer)
    if (known) return known
    const made = withDispatch(peer, dispatchTo(peer))
    guarded.set(peer, made)
    return made
  }

  const dispatchTo = (peer: Peer): Dispatch => {
    const send = (exchange: Exchange): void => observe(peer, exchange, false)
    const sendLimited: Dispatch = queue ? limitConcurrency(server, queue, send) : send
    return exchange => {
      exchange.record?.sentTo(server)
      if (exchange.kind === 'notification') return peer.dispatch(exchange)
      if (exchange.method === LISTEN) return observeNotices(peer, exchange)
      // A legacy session answers this from memory: it needs no slot, and says nothing about the server.
      if (exchange.method === DISCOVER && !isModern(peer.revision)) return peer.dispatch(exchange)
      const { rejection } = monitor
      if (rejection) return void deliver(exchange.sink, { kind: 'failure', error: rejection })
      sendLimited(exchange)
    }
  }

  const countCall = ({ method, params }: Exchange, frame: Frame, started: number): void => {
    if (method === LIST && frame.kind === 'result') tools?.addPage(frame.result)
    const name = method === CALL ? (params.get('name')?.asString() ?? '') : undefined
    const tool = name === undefined || tools?.has(name) ? name : OTHER_TOOL
    count?.(tool, frame.kind === 'failure' ? textOf(frame.error) : undefined, (performance.now() - started) / 1000)
  }

  const observe = (peer: Peer, exchange: Exchange, isRetry: boolean): void => {
    const begun = Date.now()
    const started = performance.now()
    let isCounted = false // a failure follows a result that the sink could not take
    const sent: Exchange = {
      ...exchange,
      sink: frame => {
        if (frame.kind === 'failure') {
          const fault = serverFaultOf(frame.error)
          if (fault) monitor.recordFailure(frame.error, begun)
          else monitor.recordAnswer()
          if (standIn?.answer(exchange, peer.revision, frame.error)) return
          if (fault && canRetry && !isRetry && isRetryable(exchange.method, fault))
            return void sleep(retryDelayMs(), exchange.signal).then(() => retry(peer, exchange, frame.error))
        } else if (frame.kind === 'result') monitor.recordAnswer()
        if (count && !isCounted && (frame.kind === 'result' || frame.kind === 'failure')) {
          isCounted = true
          countCall(exchange, frame, started)
        }
        const isList = exchange.method === LIST && frame.kind === 'result'
        return exchange.sink(isList ? { ...frame, result: withoutLoginMarks(frame.result) } : frame)
      },
    }
    peer.dispatch(exchange.record?.trace?.send(sent, server) ?? sent)
  }

  const retry = (peer: Peer, exchange: Exchange, error: RpcError): void => {
    if (exchange.signal.reason) return
    if (monitor.rejection) return void deliver(exchange.sink, { kind: 'failure', error })
    monitor.recordRetry()
    observe(peer, exchange, true)
  }

  /** Any notification proves that the server is alive. */
  const observeNotices = (peer: Peer, exchange: Exchange): void =>
    peer.dispatch({
      ...exchange,
      sink: frame => {
        if (frame.kind === 'notice') monitor.recordAnswer()
        return exchange.sink(frame)
      },
    })

  return { open, knownPeer, close: () => upstream.close() }
}

/** What operators are shown of an error: without text that is meant for one caller, such as the link of a login. */
const textOf = (error: RpcError): string => (error instanceof NoAnswer ? error.summary : error.message)

/**
 * Whether a request may be sent again: only a method that the protocol defines as a read, because tool annotations are
 * hints of an untrusted server; and only if no connection was made, so that the server cannot have acted on it.
 */
const isRetryable = (method: string, fault: ServerFault): boolean =>
  isUnreachable(fault) && (methodInfo(method)?.safe === true || method === 'ping')

const isUnreachable = ({ reason }: ServerFault): boolean => reason === 'upstream_unreachable'

/** Long enough for a server that is being restarted to listen again. */
const retryDelayMs = (): number => RETRY_MS * (1 + Math.random())
