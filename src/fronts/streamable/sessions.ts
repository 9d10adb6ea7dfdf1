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

export type StreamableSessions = ReturnType<typeof createStreamableSessions>

/** The open sessions, least recently used first, so that the search for idle ones is cheap. */
export const createStreamableSessions = (context: FrontContext, onRevoked: OnTokenRevoked = () => () => {}) => {
  const { principalSessions: perOwner, sessionIdleMs } = context.limits
  const byId = new Map<string, StreamableSession>()
  const releases = new Map<StreamableSession, () => void>() // from the token each was opened with
  const quota = new Quota<StreamableSession>(
    { perOwner, bytesPerOwner: BYTES_PER_OWNER, total: perOwner * TOTAL_SHARES },
    ({ isBusy, lastUsed }) => (isBusy ? BUSY_RANK : 0) + lastUsed,
  )

  const end = (session: StreamableSession): void => {
    byId.delete(session.id)
    releases.get(session)?.()
    releases.delete(session)
    quota.delete(session)
    session.end()
  }

  const touch = (session: StreamableSession): void => {
    session.touch()
    byId.delete(session.id)
    byId.set(session.id, session)
  }

  context.keepAlive.onTick(now => {
    for (const session of byId.values()) {
      if (now - session.lastUsed < sessionIdleMs) return
      if (session.isBusy) touch(session)
      else end(session)
    }
  })

  return {
    get size() {
      return byId.size
    },
    /** A session with an id that cannot be guessed; `add` makes it known. */
    create: (caller: SessionCaller, owner: string): StreamableSession =>
      new StreamableSession(randomBytes(32).toString('base64url'), caller, owner, context),
    /** Keeps a session until it ends or its token is revoked; may end another session of its owner. */
    add: (session: StreamableSession, opener: RequestInfo): void => {
      const { capabilities, info } = session.caller
      byId.set(session.id, session)
      releases.set(
        session,
        onRevoked(opener, () => end(session)),
      )
      for (const other of quota.add(session.owner, session, capabilities.retained + (info?.retained ?? 0))) {
        const { principal, workspace } = other.caller
        context.log.debug({ principal, workspace }, 'session evicted: its principal has too many')
        end(other)
      }
    },
    /** The session, if it is open and belongs to this principal and workspace. */
    find: (id: string, principal: string | undefined, workspace: string): StreamableSession | undefined => {
      const session = byId.get(id)
      if (!session?.isOwnedBy(principal) || session.caller.workspace !== workspace) return undefined
      touch(session)
      return session
    },
    end,
    endAll: (): void => {
      for (const session of [...byId.values()]) end(session)
    },
    /** Ends the sessions of a removed workspace; those with calls in flight only if `all` is true. */
    endIn: (workspace: string, all: boolean): void => {
      for (const session of [...byId.values()])
        if (session.caller.workspace === workspace && (all || session.inFlight.size === 0)) end(session)
    },
    has: (id: unknown, workspace: string): boolean =>
      typeof id === 'string' && byId.get(id)?.caller.workspace === workspace,
  }
}
