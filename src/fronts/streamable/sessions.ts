import { randomBytes } from 'node:crypto'
import type { OnTokenRevoked, RequestInfo } from '../../protocol/admission.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { Quota } from '../../protocol/quota.ts'
import { transportRulesOf } from '../../protocol/revisions.ts'
import type { FrontContext } from '../http/front-request.ts'
import { ClientSession } from '../sessions/client-session.ts'
import { EventLog } from '../streams/event-log.ts'

const TOTAL_SHARES = 10 // number of principals that can all use their whole quota
const BYTES_PER_OWNER = 16 * 1024 * 1024 // of the capabilities and `clientInfo` of its clients
const BUSY_RANK = 1e15 // ranks busy sessions after all idle ones
const GONE_MS = 60_000 // without a stream and without a request
const SERVER_STREAM = 'g' // key of the server-to-client stream

type SessionCaller = Omit<Caller, 'session' | 'headers'>

/** One legacy client over Streamable HTTP from its `initialize` to its end, with its streams. */
export class StreamableSession extends ClientSession {
  readonly id: string
  readonly owner: string // whose quota it counts for
  readonly #streams = new Map<string, EventLog>()
  #streamCount = 0
  #lastUsed = Date.now()

  constructor(id: string, caller: SessionCaller, owner: string, context: FrontContext) {
    super({ ...caller, session: id, headers: new Map() }, context)
    this.id = id
    this.owner = owner
  }

  get lastUsed(): number {
    return this.#lastUsed
  }

  touch(): void {
    this.#lastUsed = Date.now()
  }

  /** True while a client reads one of its streams or a call is running. */
  get isBusy(): boolean {
    return this.inFlight.size > 0 || [...this.#streams.values()].some(log => log.hasReader)
  }

  /** A client that reads no stream may still be there, and send its next request soon. */
  override get hasClient(): boolean {
    return this.isBusy || Date.now() - this.#lastUsed < GONE_MS
  }

  override send(pieces: Buffer[], merge?: string): void | Promise<void> {
    return this.serverStream().append(pieces, merge)
  }

  /** Opens a stream; its key is part of its event ids. */
  openStream(key = `p${++this.#streamCount}`): EventLog {
    const log = new EventLog(key, this.context, this.owner)
    this.#streams.set(key, log)
    return log
  }

  /** The server-to-client stream. */
  serverStream(): EventLog {
    const open = this.#streams.get(SERVER_STREAM)
    if (open) return open
    const log = this.openStream(SERVER_STREAM)
    this.context.keepAlive.add(log)
    return log
  }

  findStream(key: string): EventLog | undefined {
    return this.#streams.get(key)
  }

  deleteStream(log: EventLog): void {
    this.#streams.delete(log.key ?? '')
  }

  /**
   * Sends the event that opens every stream of 2025-11-25, so that a client can reconnect before the first message: an
   * id and empty data. There is no `retry` line: it belongs before a close that the client is to resume, and the gateway
   * closes no stream that way; Java SDK 1.0-2.0 fails a whole reply over a `retry` line.
   */
  prime(log: EventLog): void {
    if (transportRulesOf(this.caller.revision).priming) void log.append([])
  }

  end(): void {
    if (!this.stop()) return
    const serverStream = this.#streams.get(SERVER_STREAM)
    if (serverStream) this.context.keepAlive.delete(serverStream)
    for (const log of this.#streams.values()) {
      log.finish()
      log.clear()
    }
    this.#streams.clear()
  }
}

/** The open sessions, least recently used first, so that the search for idle ones is cheap. */
export class StreamableSessions {
  readonly #byId = new Map<string, StreamableSession>()
  readonly #releases = new Map<StreamableSession, () => void>() // from the token each was opened with
  readonly #context: FrontContext
  readonly #onRevoked: OnTokenRevoked
  readonly #quota: Quota<StreamableSession>

  constructor(context: FrontContext, onRevoked: OnTokenRevoked = () => () => {}) {
    this.#context = context
    this.#onRevoked = onRevoked
    const { principalSessions: perOwner } = context.limits
    this.#quota = new Quota(
      { perOwner, bytesPerOwner: BYTES_PER_OWNER, total: perOwner * TOTAL_SHARES },
      ({ isBusy, lastUsed }) => (isBusy ? BUSY_RANK : 0) + lastUsed,
    )
    context.keepAlive.onTick(now => this.#expire(now))
  }

  get size(): number {
    return this.#byId.size
  }

  /** A session with an id that cannot be guessed; `add` makes it known. */
  create(caller: SessionCaller, owner: string): StreamableSession {
    return new StreamableSession(randomBytes(32).toString('base64url'), caller, owner, this.#context)
  }

  /** Keeps a session until it ends or its token is revoked; may end another session of its owner. */
  add(session: StreamableSession, opener: RequestInfo): void {
    const { capabilities, info } = session.caller
    this.#byId.set(session.id, session)
    this.#releases.set(
      session,
      this.#onRevoked(opener, () => this.end(session)),
    )
    const evicted = this.#quota.add(session.owner, session, capabilities.retained + (info?.retained ?? 0))
    for (const other of evicted) {
      const { principal, workspace } = other.caller
      this.#context.log.debug({ principal, workspace }, 'session evicted: its principal has too many')
      this.end(other)
    }
  }

  /** The session, if it is open and belongs to this principal and workspace. */
  find(id: string, principal: string | undefined, workspace: string): StreamableSession | undefined {
    const session = this.#byId.get(id)
    if (!session?.isOwnedBy(principal) || session.caller.workspace !== workspace) return undefined
    this.#touch(session)
    return session
  }

  end(session: StreamableSession): void {
    this.#byId.delete(session.id)
    this.#releases.get(session)?.()
    this.#releases.delete(session)
    this.#quota.delete(session)
    session.end()
  }

  endAll(): void {
    for (const session of [...this.#byId.values()]) this.end(session)
  }

  /** Ends the sessions of a removed workspace; those with calls in flight only if `all` is true. */
  endIn(workspace: string, all: boolean): void {
    for (const session of [...this.#byId.values()])
      if (session.caller.workspace === workspace && (all || session.inFlight.size === 0)) this.end(session)
  }

  has(id: unknown, workspace: string): boolean {
    return typeof id === 'string' && this.#byId.get(id)?.caller.workspace === workspace
  }

  #touch(session: StreamableSession): void {
    session.touch()
    this.#byId.delete(session.id)
    this.#byId.set(session.id, session)
  }

  #expire(now: number): void {
    for (const session of this.#byId.values()) {
      if (now - session.lastUsed < this.#context.limits.sessionIdleMs) return
      if (session.isBusy) this.#touch(session)
      else this.end(session)
    }
  }
}
