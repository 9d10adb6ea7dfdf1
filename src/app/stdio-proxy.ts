import { get } from 'node:http'
import type { Readable, Writable } from 'node:stream'
import { createMirror } from '../bridge/mirror.ts'
import type { Daemon } from '../config/daemon-file.ts'
import { DEFAULT_LIMITS, type RemoteServer } from '../config/snapshot.ts'
import { ActiveCalls } from '../fronts/http/active-calls.ts'
import { serveStdio as serve } from '../fronts/stdio/stdio.ts'
import { KeepAlive } from '../fronts/streams/keep-alive.ts'
import { StreamRetention } from '../fronts/streams/stream-retention.ts'
import type { Upstream } from '../protocol/exchange.ts'
import { isModern } from '../protocol/revisions.ts'
import type { Log } from '../telemetry/log.ts'
import { connectRemote, type RemoteOptions } from '../upstreams/http/connect-remote.ts'
import { sendTo } from '../workspace/routing/route.ts'

const PRESENCE_MS = 60_000 // the daemon ends when it has heard of nobody for five minutes

interface Options {
  readonly daemon: Daemon
  /** Finds the daemon again, or starts another. */
  readonly findAgain: () => Promise<Daemon | undefined>
  readonly workspace: string
  readonly input: Readable
  readonly output: Writable
  readonly log: Log
  readonly version: string
}

/** A gateway with one front, a pipe, and one upstream, a workspace of the daemon; settles when the client is gone. */
export const servePipe = async (options: Options): Promise<void> => {
  const { workspace, input, output, log } = options
  const limits = DEFAULT_LIMITS
  const ticker = new KeepAlive(limits.keepAliveMs)
  let upstream = connect(options.daemon, options)
  const current: Upstream = {
    open: (caller, sessionIndex) => upstream.open(caller, sessionIndex),
    close: () => upstream.close(),
  }

  const stayPresent = keepPresence(options.daemon, async () => {
    const daemon = await options.findAgain()
    if (!daemon) return undefined
    const before = upstream
    upstream = connect(daemon, options)
    void before.close()
    return daemon
  })
  const house = {
    dispatch: sendTo(current, log),
    limits,
    log,
    keepAlive: ticker,
    retention: new StreamRetention({ total: limits.totalLogBytes, perOwner: limits.principalLogBytes }),
    activeCalls: new ActiveCalls(),
  }
  await serve(house, { input, output, workspace, principal: 'local' })
  stayPresent()
  ticker.stop()
  await current.close()
}

/** The daemon is asked in the caller's own revision, so that nothing is converted twice. */
const connect = ({ origin, token }: Daemon, { workspace, log, version }: Options): Upstream => {
  const server: RemoteServer & { name: string } = {
    name: 'the daemon',
    kind: 'remote',
    url: `${origin}/mcp/${encodeURIComponent(workspace)}`,
    type: 'http',
    headers: { authorization: `Bearer ${token}` },
    era: 'auto',
    timeoutMs: 0, // the daemon knows how long to wait for whom
  }
  const options: RemoteOptions = { log, identity: { name: 'dragoman', version }, offersCallerRevision: true }
  const modern = connectRemote({ ...server, era: 'modern' }, options)
  const legacy = connectRemote({ ...server, era: 'legacy' }, options)
  // Toward the daemon we are the HTTP client, and repeat in headers what a pipe has no headers for.
  const mirror = createMirror()
  const openModern: Upstream['open'] = async caller => {
    const peer = await modern.open(caller)
    return { ...peer, dispatch: mirror.wrap(peer.dispatch) }
  }
  return {
    open: caller => (isModern(caller.revision) ? openModern(caller) : legacy.open(caller)),
    close: async () => void (await Promise.all([modern.close(), legacy.close()])),
  }
}

/** Lets the daemon know now and then that somebody is there, and notices when it has gone. */
const keepPresence = (first: Daemon, reconnect: () => Promise<Daemon | undefined>): (() => void) => {
  let daemon = first
  const timer = setInterval(() => {
    const request = get(`${daemon.origin}/healthz`, { timeout: PRESENCE_MS / 2 }, response => void response.resume())
    request.on('timeout', () => request.destroy())
    request.on('error', () => {
      reconnect().then(
        found => {
          daemon = found ?? daemon
        },
        () => {}, // tried again at the next beat
      )
    })
  }, PRESENCE_MS)
  timer.unref()
  return () => clearInterval(timer)
}
