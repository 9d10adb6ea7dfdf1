import type { OpenerTokens } from '../../protocol/admission.ts'
import type { AbortReason } from '../../protocol/cancellation.ts'
import { RpcFailure } from '../../protocol/errors.ts'
import { Quota } from '../../protocol/quota.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { SingleFlight } from '../../std/single-flight.ts'
import { SteadyClock } from '../../std/steady-clock.ts'
import type { Claim, Held, TakeResult } from '../../stores/state/state-store.ts'
import { mintId, openId } from '../../wire/sealed-id.ts'
import { findSuccessor } from '../cluster/successor.ts'
import { SHUTTING_DOWN } from '../http/active-calls.ts'
import type { FrontContext, FrontRequest, FrontState } from '../http/front-request.ts'
import { StoredSession } from '../sessions/stored-session.ts'
import { StreamTags } from '../streams/event-id.ts'
import { restoreSession } from './restore-session.ts'
import { decodeSession, encodeSession } from './session-record.ts'
import { type SessionCaller, type SessionHere, StreamableSession } from './streamable-session.ts'

const MOVED: AbortReason = { kind: 'moved' }
const TOTAL_SHARES = 10 // number of principals that can all use their whole quota
const BYTES_PER_OWNER = 16 * 1024 * 1024 // of the capabilities and `clientInfo` of its clients
const BUSY_RANK = 1e15 // ranks busy sessions after all idle ones
const SAVE_MS = 60_000 // between writes of the last use
const SAVED_AT_ONCE = 100 // to encode thousands at once would block the process, and new sessions would wait for the store
const RANK_MS = 10_000 // between moves of a session that is used: deleting and adding often rebuilds the Map
const SWEPT_AT_ONCE = 100
const REMEMBERED = 10_000 // ended sessions
const REMEMBERED_MS = 60_000

/** Where a session is. */
export type SessionLocation =
  | SessionHere
  | { readonly kind: 'elsewhere'; readonly home: string } // at another live replica
  | { readonly kind: 'none' } // unknown, ended, or of another principal or workspace

const NONE: SessionLocation = { kind: 'none' }

export type StreamableSessions = ReturnType<typeof createStreamableSessions>

/** The sessions of this replica, about in the order of their last use, so that the search for idle ones is cheap. */
export const createStreamableSessions = (context: FrontContext, state: FrontState, tokens: OpenerTokens) => {
  const { log, limits } = context
  const { store, keys, isLasting } = state
  const { principalSessions: perOwner, sessionIdleMs } = limits
  const tags = isLasting ? new StreamTags(keys.ids) : undefined
  const byId = new Map<string, StreamableSession>()
  const releases = new Map<StreamableSession, () => void>() // from the token each was opened with
  const taking = new Map<string, Promise<TakeResult>>()
  const ended = new BoundedCache<true>(REMEMBERED, REMEMBERED_MS) // what is stored of them may not be removed yet
  const quota = new Quota<StreamableSession>(
    { perOwner, bytesPerOwner: BYTES_PER_OWNER, total: perOwner * TOTAL_SHARES },
    ({ isBusy, lastUsed }) => (isBusy ? BUSY_RANK : 0) + lastUsed,
  )
  let isStopped = false
  let markReleased = (): void => {}
  const released = new Promise<void>(resolve => {
    markReleased = resolve
  })

  /** Ends the live session; what is stored stays, and another process goes on with it. */
  const drop = (session: StreamableSession, reason: AbortReason = { kind: 'closing' }): void => {
    if (byId.get(session.id) === session) byId.delete(session.id) // it may have been revived since
    releases.get(session)?.()
    releases.delete(session)
    quota.delete(session)
    session.end(reason)
    session.stored?.release()
  }

  /** Ends a session for good. */
  const end = (session: StreamableSession): Promise<void> | undefined => {
    drop(session, { kind: 'gone' })
    if (!session.stored) return undefined
    ended.set(session.id, true)
    return session.stored.remove()
  }

  const touch = (session: StreamableSession): void => {
    session.touch()
    if (session.lastUsed - session.rankedAt < RANK_MS) return
    session.rankedAt = session.lastUsed
    byId.delete(session.id)
    byId.set(session.id, session)
  }

  const storedCopyOf = (session: StreamableSession, claim?: Claim): StoredSession =>
    new StoredSession(
      {
        id: session.id,
        store,
        read: () => ({ body: encodeSession(session.record), expires: Date.now() + sessionIdleMs }),
        onLost: () => drop(session, MOVED),
        log,
      },
      claim,
    )

  /** Keeps a session until it ends or its token is revoked; may end another session of its owner. */
  const keep = (session: StreamableSession): void => {
    const { capabilities, info } = session.caller
    byId.set(session.id, session)
    releases.set(
      session,
      tokens.onRevoked(session.token, () => void end(session)),
    )
    for (const other of quota.add(session.owner, session, capabilities.retained + (info?.retained ?? 0))) {
      const { principal, workspace } = other.caller
      log.debug({ principal, workspace }, 'session evicted: its principal has too many')
      void end(other)
    }
  }

  /** A live session, if it belongs to the caller. */
  const admit = (session: StreamableSession, { principal, workspace }: FrontRequest): SessionLocation => {
    if (!session.isOwnedBy(principal) || session.caller.workspace !== workspace) return NONE
    touch(session)
    return session.here
  }

  /** Makes a stored session live again, if it belongs to the caller. */
  const revive = (held: Held, { principal, workspace, policy, scopes }: FrontRequest): SessionLocation => {
    const record = decodeSession(held.body)
    if (!record) {
      log.warn({ workspace }, 'stored session not revived: another version has written it')
      return NONE
    }
    const { caller, owner, token } = record
    if (caller.principal !== principal) {
      const fields = { security: true, principal, owner: caller.principal, workspace }
      log.warn(fields, 'session id of another principal rejected')
      return NONE
    }
    const options = { id: held.id, caller: { ...caller, policy, scopes }, owner, token, tags }
    const session = new StreamableSession(options, context)
    session.stored = storedCopyOf(session, held)
    if (!tokens.isValid(token)) {
      void end(session)
      return NONE
    }
    session.restore(record)
    keep(session)
    restoreSession(session)
    log.debug({ principal, workspace }, 'session revived')
    return session.here
  }

  /** Claims a stored session; requests that come meanwhile share the result. */
  const take = (id: string): Promise<TakeResult> => {
    const running = taking.get(id)
    if (running) return running
    const started = store.take('session', id).finally(() => taking.delete(id))
    taking.set(id, started)
    return started
  }

  /** While this replica stops, another one goes on with its sessions, as soon as they can be taken. */
  const handOver = async (id: string): Promise<SessionLocation> => {
    if (!findSuccessor(store.members)) throw new RpcFailure(SHUTTING_DOWN)
    await released
    const home = findSuccessor(store.members, id)
    if (home === undefined) throw new RpcFailure(SHUTTING_DOWN)
    return { kind: 'elsewhere', home }
  }

  const settle = (id: string, taken: TakeResult, request: FrontRequest): SessionLocation | Promise<SessionLocation> => {
    const session = byId.get(id) // another request has revived it
    if (session) return admit(session, request)
    if (ended.get(id)) return NONE
    if (isStopped) return handOver(id)
    if (taken.kind === 'mine') return revive(taken.held, request)
    return taken.kind === 'none' ? NONE : { kind: 'elsewhere', home: taken.home }
  }

  /** Synchronous for a session in this process; otherwise asks the store, and rejects while that is away. */
  const locate = (id: string, request: FrontRequest): SessionLocation | Promise<SessionLocation> => {
    const session = byId.get(id)
    if (session) return admit(session, request)
    if (!isLasting || ended.get(id)) return NONE
    const content = openId(keys.ids, 'session', id)
    if (content?.workspace !== request.workspace) return NONE
    const { home } = content
    // What another replica has forwarded is meant for this one: its home may be stopping, and has released it.
    const isForwarded = request.address !== undefined
    if (home !== store.members.self && store.members.at(home) && !isForwarded) return { kind: 'elsewhere', home }
    if (isStopped) return handOver(id)
    const place = isForwarded ? undefined : state.homeFor?.(request.workspace)
    if (place !== undefined) return { kind: 'elsewhere', home: place }
    return take(id).then(taken => settle(id, taken, request))
  }

  const expire = (now: number): void => {
    for (const session of byId.values()) {
      if (now - session.rankedAt < sessionIdleMs) return // those behind it were used later than that
      if (now - session.lastUsed < sessionIdleMs) continue
      if (session.isBusy) touch(session)
      else void end(session)
    }
  }

  const saving = new SingleFlight()
  const saveAll = async (sessions: readonly StreamableSession[]): Promise<void> => {
    for (let from = 0; from < sessions.length; from += SAVED_AT_ONCE)
      await Promise.all(sessions.slice(from, from + SAVED_AT_ONCE).map(session => session.save()))
  }

  /** Writes the last use of sessions used since they were stored; open streams keep a session alive, too. */
  const saveLastUses = (now: number): void => {
    const isDue = ({ stored, lastUsed, isBusy }: StreamableSession): boolean => {
      const savedAt = stored?.savedAt ?? now
      return lastUsed > savedAt || (now - savedAt > sessionIdleMs / 2 && isBusy)
    }
    void saving.run(() => saveAll([...byId.values()].filter(isDue)))
  }

  const sweep = async (): Promise<void> => {
    const expired = await store.takeAbandoned('session', 'expired', SWEPT_AT_ONCE)
    for (const held of expired) if (!byId.has(held.id)) await store.remove(held)
  }

  const clock = new SteadyClock()
  let savedAt = Date.now() // the last uses

  /** After a jump of the clock every session looks unused for too long, or not long enough: all start anew. */
  const useAll = (): void => {
    savedAt = Date.now()
    for (const session of byId.values()) {
      session.touch()
      session.rankedAt = session.lastUsed
    }
    void saving.run(() => saveAll([...byId.values()]))
  }

  context.keepAlive.onTick(now => {
    if (clock.hasJumped(now)) return useAll()
    expire(now)
    if (!isLasting || (now >= savedAt && now - savedAt < SAVE_MS)) return
    savedAt = now
    saveLastUses(now)
    sweep().catch((error: unknown) => log.debug({ err: error }, 'expired sessions not removed from the store'))
  })
  store.onLost(({ kind, id }) => {
    const session = kind === 'session' && byId.get(id)
    if (session) drop(session, MOVED)
  })

  return {
    get size() {
      return byId.size
    },
    /** A session with an id that cannot be guessed; `add` makes it known. */
    create: (caller: SessionCaller, owner: string, token: string | undefined): StreamableSession => {
      const { workspace } = caller
      const id = mintId(keys.ids[0], 'session', { home: store.members.self, workspace })
      return new StreamableSession({ id, caller, owner, token, tags }, context)
    },
    /** Keeps a new session. The client is answered when it is stored. */
    add: (session: StreamableSession): Promise<void> | undefined => {
      keep(session)
      if (isLasting) session.stored = storedCopyOf(session)
      return session.save()
    },
    /** A session in this process, whichever principal it belongs to. */
    get: (id: string): StreamableSession | undefined => byId.get(id),
    locate,
    end,
    /** Ends every session, unless it is stored: then it goes on in another process. */
    stop: async (): Promise<void> => {
      isStopped = true
      const sessions = [...byId.values()]
      const changed = sessions.filter(({ stored, lastUsed }) => stored && lastUsed > stored.savedAt)
      await Promise.all(changed.map(session => session.save()))
      for (const session of sessions) drop(session)
    },
    /** After `stop`: what is stored can be taken by other replicas now. */
    markReleased: () => markReleased(),
    /** Ends the sessions of a removed workspace; those with calls in flight only if `all` is true. */
    endIn: (workspace: string, all: boolean): void => {
      for (const session of [...byId.values()])
        if (session.caller.workspace === workspace && (all || session.inFlight.size === 0)) void end(session)
    },
    countIn: (workspace: string): number =>
      [...byId.values()].filter(session => session.caller.workspace === workspace).length,
    has: (id: unknown, workspace: string): boolean =>
      typeof id === 'string' && byId.get(id)?.caller.workspace === workspace,
  }
}
