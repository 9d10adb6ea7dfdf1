import { get } from 'node:http'
import type { Readable, Writable } from 'node:stream'
import { ParamHeaderWriter } from '../bridge/param-header-writer.ts'
import type { Daemon } from '../config/daemon-file.ts'
import { DEFAULT_LIMITS, type RemoteServer } from '../config/snapshot.ts'
import { ActiveCalls } from '../fronts/http/active-calls.ts'
import { serveStdio } from '../fronts/stdio/stdio.ts'
import { KeepAlive } from '../fronts/streams/keep-alive.ts'
import { StreamRetention } from '../fronts/streams/stream-retention.ts'
import { deliver } from '../protocol/deliver.ts'
import type { Dispatch, Frame, Upstream } from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import type { Log } from '../telemetry/log.ts'
import { connectRemote, type RemoteOptions } from '../upstreams/connect-remote.ts'
import { sendTo } from '../workspace/routing/send.ts'

const PING_MS = 60_000 // the daemon exits after five minutes without a request
/** The start of another daemon would keep a service manager from starting the one that crashed again. */
const LASTING_GONE_MS = 5 * 60_000

interface StdioProxyOptions {
  readonly daemon: Daemon
  /** Finds the daemon again; one that is gone is replaced only if `mayStart`. */
  readonly findAgain: (mayStart: boolean) => Promise<Daemon | undefined>
  readonly workspace: string
  readonly input: Readable
  readonly output: Writable
  readonly log: Log
  readonly version: string
}

/** Serves a client on stdio by forwarding to a workspace of the daemon; resolves when the client has left. */
export const serveStdioProxy = async (options: StdioProxyOptions): Promise<void> => {
  const { workspace, input, output, log } = options
  const limits = DEFAULT_LIMITS
  const keepAlive = new KeepAlive(limits.keepAliveMs)
  let daemon = options.daemon
  let upstream = connect(daemon, options)
  const current: Upstream = {
    open: (caller, sessionIndex) => upstream.open(caller, sessionIndex),
    close: () => upstream.close(),
  }

  /** Connects to the daemon of this moment; true if it is another one than before. */
  const reconnect = async (mayStart: boolean): Promise<boolean> => {
    const found = await options.findAgain(mayStart)
    if (!found || (found.origin === daemon.origin && found.token === daemon.token)) return false
    const before = upstream
    daemon = found
    upstream = connect(found, options)
    void before.close()
    return true
  }
  const stopPinging = pingDaemon(
    () => daemon.origin,
    goneMs => reconnect(!daemon.isLasting || goneMs >= LASTING_GONE_MS),
  )
  const context = {
    dispatch: followDaemon(sendTo(current, log), () => reconnect(false)),
    limits,
    log,
    keepAlive,
    retention: new StreamRetention({ total: limits.totalLogBytes, perOwner: limits.principalLogBytes }),
    activeCalls: new ActiveCalls(limits.principalSessions),
  }
  await serveStdio(context, { input, output, workspace, principal: 'local' })
  stopPinging()
  keepAlive.stop()
  await current.close()
}

/** The daemon is called in the caller's revision, so that messages are converted once only. */
const connect = ({ origin, token }: Daemon, { workspace, log, version }: StdioProxyOptions): Upstream => {
  const server: RemoteServer & { name: string } = {
    name: 'the daemon',
    kind: 'remote',
    url: `${origin}/mcp/${encodeURIComponent(workspace)}`,
    type: 'http',
    headers: { authorization: `Bearer ${token}` },
    era: 'auto',
    timeoutMs: 0, // the daemon has the timeouts of the servers
  }
  const options: RemoteOptions = { log, identity: { name: 'dragoman', version }, offersCallerRevision: true }
  const modern = connectRemote({ ...server, era: 'modern' }, options)
  const legacy = connectRemote({ ...server, era: 'legacy' }, options)
  // An HTTP client must repeat some params in headers; the stdio client sent none.
  const paramHeaders = new ParamHeaderWriter()
  const openModern: Upstream['open'] = async caller => {
    const peer = await modern.open(caller)
    return { ...peer, dispatch: paramHeaders.wrap(peer.dispatch) }
  }
  return {
    open: caller => (isModern(caller.revision) ? openModern(caller) : legacy.open(caller)),
    close: async () => void (await Promise.all([modern.close(), legacy.close()])),
  }
}

/** Failures that a restart of the daemon explains: its address or its token has changed. */
const CHANGED: ReadonlySet<string | undefined> = new Set(['upstream_unreachable', 'upstream_auth'])

/** Looks for another daemon when a request fails. One that was rejected for its token reached no server: it is sent again. */
const followDaemon =
  (dispatch: Dispatch, reconnect: () => Promise<boolean>): Dispatch =>
  exchange => {
    const { kind, sink } = exchange
    if (kind !== 'request') return dispatch(exchange)
    const fail = async (frame: Frame & { kind: 'failure' }, reason: string | undefined): Promise<void> => {
      const isOther = await reconnect().catch(() => false)
      if (isOther && reason === 'upstream_auth') dispatch(exchange)
      else await deliver(sink, frame)
    }
    dispatch({
      ...exchange,
      sink: frame => {
        const reason = frame.kind === 'failure' ? frame.error.data?.get('reason')?.asString() : undefined
        return frame.kind === 'failure' && CHANGED.has(reason) ? fail(frame, reason) : sink(frame)
      },
    })
  }

/** Keeps the daemon from exiting while the client is connected, and reconnects when it has exited. */
const pingDaemon = (originOf: () => string, reconnect: (goneMs: number) => Promise<unknown>): (() => void) => {
  let goneAt: number | undefined
  const timer = setInterval(() => {
    const request = get(`${originOf()}/healthz`, { timeout: PING_MS / 2 }, response => {
      goneAt = undefined
      response.resume()
    })
    request.on('timeout', () => request.destroy())
    request.on('error', () => {
      goneAt ??= Date.now()
      reconnect(Date.now() - goneAt).catch(() => {}) // retried at the next ping
    })
  }, PING_MS)
  timer.unref()
  return () => clearInterval(timer)
}
