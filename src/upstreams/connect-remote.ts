import type { RemoteServer, SessionPooling } from '../config/snapshot.ts'
import type { Caller, Peer, Upstream } from '../protocol/exchange.ts'
import { headerValueError } from '../std/header-text.ts'
import { within } from '../std/time.ts'
import { type CallerUpstream, connectPerCaller } from './connect-per-caller.ts'
import { DISCONNECTED, type FailureDetails, UpstreamFailure } from './failures.ts'
import type { BearerTokens } from './http/authorized-request.ts'
import { createHttpLink, type HttpLink, type HttpLinkOptions } from './http/http-link.ts'
import { connectWithLogins } from './login/connect-with-logins.ts'
import { tokensOf, type UpstreamLogins, withoutTokens } from './login/upstream-logins.ts'
import { type Era, EraDetector } from './probe.ts'
import { HandshakeRefused } from './session/handshake.ts'
import { acceptsGet, chooseEra, LegacySupport } from './session/legacy-support.ts'
import { poolPlace, SessionPool } from './session/pool.ts'
import { createRecordPlaces, createSessionEnder } from './session/remote-records.ts'
import { NO_RECORD } from './session/server-session-record.ts'
import type { ServerSessionRecords } from './session/server-session-records.ts'
import type { LegacySession } from './session/session.ts'
import { createSessionOpener } from './session/session-opener.ts'
import { createStateless } from './stateless/stateless.ts'

const MINUTE = 60_000

/** Everything but the log has a default. */
export interface RemoteOptions extends Omit<HttpLinkOptions, 'tokens'> {
  readonly logins?: UpstreamLogins | undefined // undefined: the server is called without OAuth
  readonly idleMs?: number // until an unused session is closed
  readonly holdMs?: number // for a question until a call can carry it
  readonly closeMs?: number // to end sessions at the server when the upstream closes
  readonly legacyMs?: number // until a legacy server is probed again
  readonly sessionsPerPrincipal?: number | undefined // for callers without a session of their own
  readonly backoffMs?: number // after a first failed probe; doubles up to five seconds
  readonly records?: ServerSessionRecords | undefined // undefined: sessions end with the process
}

const NO_BACK_CHANNEL: FailureDetails = {
  reason: 'upstream_protocol',
  text: 'cannot ask its clients on a legacy session: the session has no id, or no GET stream',
}

type NamedServer = RemoteServer & { readonly name: string }

/** Connects to a server over HTTP, of either era. `open` rejects with UpstreamFailure. */
export const connectRemote = (server: NamedServer, options: RemoteOptions): Upstream => {
  const { name, personal, headers } = server
  const { logins, records } = options
  records?.addServer(name, createSessionEnder(server, options))
  const connect = (own: Readonly<Record<string, string>>, tokens?: BearerTokens) =>
    new RemoteUpstream({ ...server, headers: { ...headers, ...own } }, { ...options, tokens })
  if (logins?.isPersonal)
    return connectWithLogins({
      name,
      personal,
      logins,
      connectShared: () => connect({}, withoutTokens(logins)),
      connectOwn: (own, principal) => connect(own, tokensOf(logins.credentials, principal)),
    })
  const tokens = logins && tokensOf(logins.credentials, undefined) // of the gateway
  if (!personal) return connect({}, tokens)
  return connectPerCaller({ name, personal, faultOf: headerValueError, connect: own => connect(own, tokens) })
}

/** Detects the era of the server and opens peers of the era that fits the caller. */
class RemoteUpstream implements CallerUpstream {
  readonly #name: string
  readonly #link: HttpLink
  readonly #configured: 'auto' | Era
  readonly #pooling: SessionPooling | undefined
  readonly #detector: EraDetector
  readonly #stateless: Peer
  readonly #sessions: ReturnType<typeof createSessionOpener>
  readonly #legacySupport: LegacySupport // of a modern server
  readonly #pool: SessionPool<LegacySession>
  readonly #closeMs: number
  #trial: Promise<void> | undefined // the first attempt at a legacy session with a modern server
  #closing: Promise<void> | undefined

  constructor(server: NamedServer, options: RemoteOptions & HttpLinkOptions) {
    const { idleMs = 30 * MINUTE, holdMs = 20_000, closeMs = 1000, legacyMs = 24 * 60 * MINUTE, records } = options
    this.#name = server.name
    this.#closeMs = closeMs
    this.#configured = server.type === 'sse' ? 'legacy' : server.era
    this.#pooling = server.pool
    this.#link = createHttpLink(server, options)
    this.#detector = new EraDetector(this.#link, {
      configured: this.#configured,
      legacyMs,
      backoffMs: options.backoffMs ?? 250,
    })
    this.#stateless = createStateless(this.#link, () => this.#detector.forgetEra())
    this.#sessions = createSessionOpener(this.#link, server.type, idleMs)
    this.#legacySupport = new LegacySupport(legacyMs)
    const placeOf = createRecordPlaces(server, idleMs)
    this.#pool = new SessionPool({
      name: server.name,
      idleMs,
      placeOf: (caller, index) => poolPlace(caller, server.pool, index),
      perPrincipal: options.sessionsPerPrincipal,
      open: async (caller, slot) => {
        const isModern = this.#detector.era === 'modern'
        const isRecorded = records && server.type !== 'sse'
        const record = isRecorded ? await records.open(placeOf(caller, slot)) : NO_RECORD
        const session = await this.#sessions.open(caller, { ...slot, holdMs, requiresHandshake: isModern, record })
        if (!isModern || session.hasBackChannel) return session
        void session.close()
        throw new HandshakeRefused(server.name, NO_BACK_CHANNEL)
      },
    })
  }

  open(caller: Caller, sessionIndex = 0): Promise<Peer> {
    if (this.#closing) return Promise.reject(new UpstreamFailure(this.#name, DISCONNECTED))
    if (this.#eraFor(caller) === 'modern') return Promise.resolve(this.#stateless)
    return this.#pool.find(caller, sessionIndex) ?? this.#detectAndOpen(caller, sessionIndex)
  }

  knownPeer(caller: Caller): Peer | undefined {
    if (this.#closing) return undefined
    return this.#eraFor(caller) === 'modern' ? this.#stateless : this.#pool.findOpen(caller)
  }

  sharedKey(caller: Caller): string | undefined {
    if (this.#pooling === 'stateless' || !this.#sessions.hasState()) return undefined
    if (this.#eraFor(caller) === 'modern') return undefined
    return caller.session === undefined ? poolPlace(caller, this.#pooling).key : undefined
  }

  async probe(): Promise<boolean> {
    if (this.#closing) return false
    await this.#detector.checkReachable()
    return true
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  isIdle(): boolean {
    return this.#link.http.isIdle && this.#pool.size === 0
  }

  async #close(): Promise<void> {
    const ended = this.#pool.close()
    await within(this.#closeMs, ended, () => {})
    this.#sessions.close()
    await this.#link.http.close()
    await within(this.#closeMs, ended, () => {}) // what the server has not ended is recorded now
  }

  #eraFor(caller: Caller): Era | undefined {
    return chooseEra(caller, this.#configured, this.#detector.era, this.#legacySupport)
  }

  async #detectAndOpen(caller: Caller, sessionIndex: number): Promise<Peer> {
    const wasKnown = this.#detector.era !== undefined
    const era = await this.#detector.detect()
    try {
      return await this.#openAs(era, caller, sessionIndex)
    } catch (error) {
      // The known era may be out of date: then the failure made the detector forget it.
      if (!wasKnown || this.#closing || this.#detector.era !== undefined) throw error
      // If the probe fails too, the first error is more useful: a server may grant one session only.
      const now = await this.#detector.detect().catch(() => era)
      if (now === era) throw error
      return this.#openAs(now, caller, sessionIndex)
    }
  }

  async #openAs(era: Era, caller: Caller, sessionIndex: number): Promise<Peer> {
    if (era === 'legacy') return this.#openSession(caller, sessionIndex)
    return chooseEra(caller, this.#configured, era, this.#legacySupport) === 'legacy'
      ? this.#tryLegacy(caller, sessionIndex)
      : this.#stateless
  }

  async #openSession(caller: Caller, sessionIndex: number): Promise<Peer> {
    try {
      const peer = await this.#pool.open(caller, sessionIndex)
      this.#detector.markReachable()
      return peer
    } catch (error) {
      // A full pool, or a server that grants no further session, is no outage.
      if (error instanceof UpstreamFailure && sessionIndex === 0 && error.reason !== 'pool_exhausted')
        this.#record(error)
      throw error
    }
  }

  #record(failure: UpstreamFailure): void {
    if (failure.reason === 'upstream_protocol') this.#detector.forgetEra()
    else this.#detector.recordFailure(failure)
  }

  /** The first legacy caller finds out whether a modern server takes legacy sessions; the others wait for that. */
  #tryLegacy(caller: Caller, sessionIndex: number): Promise<Peer> {
    if (this.#legacySupport.isSupported !== undefined) return this.#openLegacy(caller, sessionIndex)
    if (this.#trial) return this.#trial.then(() => this.open(caller, sessionIndex))
    const opening = this.#openLegacy(caller, sessionIndex)
    const end = (): void => {
      this.#trial = undefined
    }
    this.#trial = opening.then(end, end)
    return opening
  }

  /** Opens a legacy session with a modern server; if the server grants none, the caller gets its stateless peer. */
  async #openLegacy(caller: Caller, sessionIndex: number): Promise<Peer> {
    const wasKnown = this.#legacySupport.isSupported === true
    if (!wasKnown) this.#sessions.expectGetStream()
    if (!wasKnown && !(await acceptsGet(this.#link))) return this.#useStateless(true, NO_BACK_CHANNEL)
    try {
      const peer = await this.#pool.open(caller, sessionIndex)
      this.#legacySupport.confirm()
      this.#detector.markReachable()
      return peer
    } catch (error) {
      if (!(error instanceof UpstreamFailure) || this.#closing || error.reason === 'pool_exhausted') throw error
      if (error.isAboutLogin) throw error
      if (!(error instanceof HandshakeRefused) && (wasKnown || error.reason === 'upstream_unreachable')) {
        this.#record(error)
        throw error
      }
      return this.#useStateless(error instanceof HandshakeRefused, error.details)
    }
  }

  #useStateless(isEvidence: boolean, { text }: FailureDetails): Peer {
    this.#legacySupport.deny(isEvidence)
    this.#link.log.debug({ reason: text }, 'legacy callers use the stateless protocol of the server')
    return this.#stateless
  }
}
