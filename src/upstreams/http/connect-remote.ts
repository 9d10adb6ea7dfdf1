import { headerValueError } from '../../config/remote.ts'
import type { RemoteServer } from '../../config/snapshot.ts'
import type { Caller, Peer, Upstream } from '../../protocol/exchange.ts'
import { DISCONNECTED, type FailureDetails, UpstreamFailure } from '../failures.ts'
import { type CallerUpstream, connectPerCaller } from '../personal/connect-per-caller.ts'
import { createEraDetector, type Era } from '../probe.ts'
import { HandshakeRefused } from '../session/handshake.ts'
import { acceptsGet, chooseEra, LegacySupport } from '../session/legacy-support.ts'
import { SessionPool } from '../session/pool.ts'
import { createSessionOpener } from '../session/session-opener.ts'
import { createStateless } from '../stateless/stateless.ts'
import { createHttpLink, type HttpLinkOptions } from './http-link.ts'

const MINUTE = 60_000

/** What `connectRemote` may be told; everything but the log has a default. */
export interface RemoteOptions extends HttpLinkOptions {
  readonly idleMs?: number // a session nobody uses
  readonly holdMs?: number // a question nobody can be asked yet
  readonly closeMs?: number // for sessions to be ended at the server when we close
  readonly legacyMs?: number // how long a server counts as legacy without being asked again
  readonly sessionsPerPrincipal?: number | undefined // for callers without one of their own
  readonly backoffMs?: number // after a first failed probe; doubles up to five seconds
}

const NO_BACK_CHANNEL: FailureDetails = {
  reason: 'upstream_protocol',
  text: 'cannot ask its clients on a legacy session: the session has no id, or no GET stream',
}

type Server = RemoteServer & { readonly name: string }

/** A server reached over HTTP, of whatever era it turns out to be. `open` rejects with UpstreamFailure. */
export const connectRemote = (server: Server, options: RemoteOptions): Upstream => {
  const { name, personal, headers } = server
  if (!personal) return connectAlike(server, options)
  const connect = (own: Readonly<Record<string, string>>) =>
    connectAlike({ ...server, headers: { ...headers, ...own } }, options)
  return connectPerCaller({ name, personal, faultOf: headerValueError, connect })
}

/** The same for every caller, or for one alone. */
const connectAlike = (server: Server, options: RemoteOptions): CallerUpstream => {
  const {
    idleMs = 30 * MINUTE,
    holdMs = 20_000,
    closeMs = 1000,
    legacyMs = 24 * 60 * MINUTE,
    backoffMs = 250,
  } = options
  const link = createHttpLink(server, options)
  const configured = server.type === 'sse' ? 'legacy' : server.era
  const detector = createEraDetector(link, { configured, legacyMs, backoffMs })
  const stateless = Promise.resolve(createStateless(link, () => detector.forgetEra()))
  const legacy = createSessionOpener(link, server.type, idleMs)
  const leg = new LegacySupport(legacyMs)
  const pool = new SessionPool({
    name: server.name,
    idleMs,
    manner: server.pool,
    perPrincipal: options.sessionsPerPrincipal,
    open: async (caller, slot) => {
      const isLeg = detector.era === 'modern'
      const session = await legacy.open(caller, { ...slot, holdMs, requiresHandshake: isLeg })
      if (!isLeg || session.hasBackChannel) return session
      void session.close()
      throw new HandshakeRefused(server.name, NO_BACK_CHANNEL)
    },
  })
  let trial: Promise<void> | undefined // of the legacy leg of a modern server
  let closing: Promise<void> | undefined

  const openSession = async (caller: Caller, index: number): Promise<Peer> => {
    try {
      const peer = await pool.open(caller, index)
      detector.markReachable()
      return peer
    } catch (error) {
      // A server that grants no further session, and a full pool, say nothing of the server.
      if (error instanceof UpstreamFailure && index === 0 && error.reason !== 'pool_exhausted') learn(error)
      throw error
    }
  }

  const learn = (failure: UpstreamFailure): void => {
    if (failure.reason === 'upstream_protocol') detector.forgetEra()
    else detector.markUnreachable(failure)
  }

  /** Opens a legacy session with a modern server; if the server grants none, its modern leg serves the caller. */
  const openLeg = async (caller: Caller, index: number): Promise<Peer> => {
    const wasKnown = leg.isSupported === true
    if (!wasKnown) legacy.expectGetStream()
    if (!wasKnown && !(await acceptsGet(link))) return missLeg(true, NO_BACK_CHANNEL)
    try {
      const peer = await pool.open(caller, index)
      leg.confirm()
      detector.markReachable()
      return peer
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || closing || error.reason === 'pool_exhausted') throw error
      if (!(error instanceof HandshakeRefused) && (wasKnown || error.reason === 'upstream_unreachable')) {
        learn(error)
        throw error
      }
      return missLeg(error instanceof HandshakeRefused, error.details)
    }
  }

  const missLeg = (isEvidence: boolean, { text }: FailureDetails): Promise<Peer> => {
    leg.deny(isEvidence)
    link.log.debug({ reason: text }, 'legacy callers are served by the modern leg of the server')
    return stateless
  }

  /** The first legacy caller finds out whether there is a legacy leg; those who come meanwhile wait for the verdict. */
  const tryLeg = (caller: Caller, index: number): Promise<Peer> => {
    if (leg.isSupported !== undefined) return openLeg(caller, index)
    if (trial) return trial.then(() => open(caller, index))
    const opening = openLeg(caller, index)
    const over = (): void => {
      trial = undefined
    }
    trial = opening.then(over, over)
    return opening
  }

  const openAs = (era: Era, caller: Caller, index: number): Promise<Peer> => {
    if (era === 'legacy') return openSession(caller, index)
    return chooseEra(caller, configured, era, leg) === 'legacy' ? tryLeg(caller, index) : stateless
  }

  const find = async (caller: Caller, index: number): Promise<Peer> => {
    const wasKnown = detector.era !== undefined
    const era = await detector.detect()
    try {
      return await openAs(era, caller, index)
    } catch (error) {
      // A verdict from before may be out of date: then the failure made the detector forget it.
      if (!wasKnown || closing || detector.era !== undefined) throw error
      // If it does not answer the probe either, the first error says more: a server may grant one session only.
      const now = await detector.detect().catch(() => era)
      if (now === era) throw error
      return openAs(now, caller, index)
    }
  }

  const open = (caller: Caller, index = 0): Promise<Peer> => {
    if (closing) return Promise.reject(new UpstreamFailure(server.name, DISCONNECTED))
    if (chooseEra(caller, configured, detector.era, leg) === 'modern') return stateless
    return pool.find(caller, index) ?? find(caller, index)
  }

  const probe = async (): Promise<boolean> => {
    if (closing) return false
    await detector.checkReachable()
    return true
  }

  const close = (): Promise<void> => {
    closing ??= within(closeMs, pool.close()).then(() => {
      legacy.close()
      return link.http.close()
    })
    return closing
  }

  return { open, probe, close, isIdle: () => link.http.isIdle && pool.size === 0 }
}

const within = (ms: number, work: Promise<void>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
