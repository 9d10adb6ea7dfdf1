import { SteadyClock } from '../../std/steady-clock.ts'
import { within } from '../../std/time.ts'
import { type Claim, type Held, StateError, type StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import type { EndOutcome } from '../streamable/session-headers.ts'
import { SilentServers } from './silent-servers.ts'
import { decodeStored, encodeStored, type StoredServerSession } from './stored-server-session.ts'

/** Ends sessions at one server. */
export interface SessionEnder {
  readonly url: string // a hash of the server's URL: no other server may learn the ids of its sessions
  end(stored: StoredServerSession): Promise<EndOutcome>
}

interface FormerServer {
  readonly ender: SessionEnder
  readonly until: number
}

interface SweepOptions {
  readonly store: StateStore
  readonly log: Log
  /** True if the session is open in this process: then it is not abandoned. */
  keepIfLive(held: Held): boolean
  /** Writes the records of all open sessions again. */
  refreshAll(): void
}

interface UnendedSession {
  readonly claim: Claim
  recordAgain(): Promise<void>
}

interface AbandonedSession {
  readonly held: Held
  readonly stored: StoredServerSession | undefined // undefined: its record cannot be read
  readonly ender: SessionEnder | undefined // undefined: its server is not known here
}

interface Sweep {
  readonly startedAt: number
  abandoned: number // sessions found
  tried: number // at their server
  ended: number
}

const MOST = 100 // sessions tried in one sweep
const MOST_ROUNDS = 100
const SWEEP_MS = 10_000
const EXPIRED_EVERY = 6 // sweeps: a client may still come back to a session that has not expired
const AT_ONCE = 10
const END_MS = 5000 // for a server to answer
const MOST_UNENDED = 10_000 // further ones end when they expire
const MINUTE = 60_000
/** Until a server is tried again that did not end a session; after the last attempt the session is forgotten. */
const FIRST_RETRY_MS = 10_000
const RETRY_MS: readonly number[] = [FIRST_RETRY_MS, MINUTE, 10 * MINUTE, 10 * MINUTE]
const GIVE_UP_MS = RETRY_MS.reduce((sum, ms) => sum + ms) // until a session is forgotten whose server does not respond
const FORMER_MS = 60 * MINUTE // for a server that was removed, or has got another address, to end its last sessions

/**
 * Ends sessions at servers that have no process any more: soon those that no other process could go on with, the others
 * when no client has come back to them until they expired.
 */
export class SessionSweep {
  readonly #options: SweepOptions
  readonly #servers = new Map<string, SessionEnder>() // by name
  readonly #former = new Map<string, FormerServer>() // by name and URL
  readonly #timer: NodeJS.Timeout
  readonly #clock = new SteadyClock()
  readonly #silent = new SilentServers<SessionEnder>()
  readonly #waiting = new Map<string, string>() // claimed by an earlier sweep: the client's session, by record id
  readonly #unended: UnendedSession[] = [] // closed by this process while their server or the store was away
  readonly #unstored: (() => Promise<void>)[] = []
  #count = 0
  #retryAt = Number.POSITIVE_INFINITY // when the first session is due that is tried again
  #running: Promise<number> | undefined

  constructor(options: SweepOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#tick(), SWEEP_MS).unref()
  }

  addServer(name: string, ender: SessionEnder): void {
    this.removeServer(name)
    this.#servers.set(name, ender)
    this.#former.delete(formerKey(name, ender.url))
  }

  /** Its last sessions are ended for a while: they may be closed only now, or it may not be available now. */
  removeServer(name: string): void {
    const now = Date.now()
    for (const [key, { until }] of this.#former) if (until < now) this.#former.delete(key)
    const ender = this.#servers.get(name)
    if (ender) this.#former.set(formerKey(name, ender.url), { ender, until: now + FORMER_MS })
    this.#servers.delete(name)
  }

  /** The next sweep ends that session, unless it is open again by then; `recordAgain` is called if the store has lost it. */
  endSoon(claim: Claim, recordAgain: () => Promise<void>): void {
    if (this.#unended.length < MOST_UNENDED) this.#unended.push({ claim, recordAgain })
  }

  /** The next sweep calls that function, which records a session that is to be ended, and again while the store is away. */
  storeSoon(write: () => Promise<void>): void {
    if (this.#unstored.length < MOST_UNENDED) this.#unstored.push(write)
  }

  /** Resolves with the number of sessions that were abandoned. */
  run(takesExpired = true): Promise<number> {
    this.#running ??= this.#sweep(takesExpired).finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** After a jump of the clock every record looks too old or too young. */
  #tick(): void {
    if (this.#clock.hasJumped(Date.now())) return this.#options.refreshAll()
    const isRetryDue = Date.now() >= this.#retryAt
    this.run(++this.#count % EXPIRED_EVERY === 0 || isRetryDue).catch((error: unknown) =>
      this.#options.log.debug({ err: error }, 'abandoned sessions with servers not swept'),
    )
  }

  async #sweep(takesExpired: boolean): Promise<number> {
    const { store, log } = this.#options
    for (const write of this.#unstored.splice(0)) await write().catch((error: unknown) => this.#notStored(write, error))
    if (takesExpired) this.#retryAt = Number.POSITIVE_INFINITY
    const sweep = { startedAt: Date.now(), abandoned: 0, tried: 0, ended: 0 }
    await this.#endAll(sweep, limit => store.takeAbandoned('transient-server-session', 'orphaned', limit))
    await this.#endAll(sweep, limit => this.#takeUnended(limit))
    await this.#endAll(sweep, limit => this.#takeOwnerless(limit))
    if (takesExpired)
      for (const kind of ['server-session', 'transient-server-session'] as const)
        await this.#endAll(sweep, limit => store.takeAbandoned(kind, 'expired', limit))
    if (sweep.ended > 0) log.info({ sessions: sweep.ended }, 'abandoned sessions with servers ended')
    return sweep.abandoned
  }

  /** Sessions that are only put off do not count for the limit: there may be thousands before those of other servers. */
  async #endAll(sweep: Sweep, take: (limit: number) => Promise<Held[]>): Promise<void> {
    for (let round = 0; round < MOST_ROUNDS && sweep.tried < MOST; round++) {
      const limit = MOST - sweep.tried
      const taken = await take(limit)
      const abandoned = taken.filter(held => !this.#options.keepIfLive(held)).map(held => this.#readSession(held))
      sweep.abandoned += abandoned.length
      for (let left = abandoned; left.length > 0; ) {
        const putOff = new Set(left.filter(session => this.#isPutOff(session, sweep)))
        const due = left.filter(session => !putOff.has(session))
        const ending = due.slice(0, AT_ONCE).map(session => this.#end(session, sweep))
        await Promise.all([...[...putOff].map(session => this.#putOff(session)), ...ending])
        left = due.slice(AT_ONCE)
      }
      if (taken.length < limit || abandoned.length === 0) return
    }
  }

  #notStored(write: () => Promise<void>, error: unknown): void {
    if (error instanceof StateError && error.reason === 'away') return this.storeSoon(write)
    this.#options.log.debug({ err: error }, 'abandoned session with a server not recorded')
  }

  async #takeUnended(limit: number): Promise<Held[]> {
    const { store } = this.#options
    const held: Held[] = []
    for (let first = this.#unended[0]; first && held.length < limit; first = this.#unended[0]) {
      const { claim, recordAgain } = first
      const taken = await store.take(claim.kind, claim.id)
      this.#unended.shift()
      if (taken.kind === 'mine') held.push(taken.held)
      else if (taken.kind === 'none') await recordAgain().catch((error: unknown) => this.#notStored(recordAgain, error))
    }
    return held
  }

  /**
   * Sessions of an earlier process whose client has ended its own session. Only where there is no other replica, nor one
   * that may start soon: what this one claims, it alone can go on with.
   */
  async #takeOwnerless(limit: number): Promise<Held[]> {
    const { store } = this.#options
    if (store.health().engine === 'postgres' || store.members.all().length > 1) return []
    for (const { id, body } of await store.takeAbandoned('server-session', 'orphaned', limit)) {
      const session = decodeStored(body)?.session
      if (session !== undefined) this.#waiting.set(id, session)
    }
    const ownerless: Held[] = []
    for (const [id, session] of [...this.#waiting].slice(0, limit)) {
      const isOwned = (await store.read('session', session)) !== undefined
      this.#waiting.delete(id)
      if (isOwned) {
        this.#waiting.set(id, session) // asked about again after all others
        continue
      }
      const taken = await store.take('server-session', id)
      if (taken.kind === 'mine') ownerless.push(taken.held)
    }
    return ownerless
  }

  #readSession(held: Held): AbandonedSession {
    const stored = decodeStored(held.body)
    return { held, stored, ender: stored && this.#enderOf(stored) }
  }

  /**
   * Whether the session is not tried now because its server did not respond: each try may take seconds. When it is to be given
   * up, the server is tried once more.
   */
  #isPutOff({ stored, ender }: AbandonedSession, { startedAt }: Sweep): boolean {
    const silence = ender && this.#silent.get(ender)
    if (!silence) return false
    const { giveUpAt = Number.POSITIVE_INFINITY } = stored ?? {}
    return silence.triedAt >= startedAt || Date.now() < Math.min(silence.until, giveUpAt)
  }

  /** Being put off is no attempt, but it has an end. */
  async #putOff({ held, stored, ender }: AbandonedSession): Promise<void> {
    const now = Date.now()
    if (!stored || isToGiveUp(stored, now)) return this.#forget(held, stored, 'unreachable')
    const until = Math.max((ender && this.#silent.get(ender)?.until) ?? 0, now + FIRST_RETRY_MS)
    await this.#writeAgain(held, stored, until)
  }

  /** A session at a server that this process does not know is kept as long: the next process, or configuration, may know it. */
  async #end({ held, stored, ender }: AbandonedSession, sweep: Sweep): Promise<void> {
    const outcome = stored && ender && (await this.#tryToEnd(stored, ender, sweep))
    if (outcome === 'ended') {
      sweep.ended++
      return this.#options.store.remove(held)
    }
    const now = Date.now()
    const waitMs = RETRY_MS[stored?.attempts ?? 0]
    const isOver = !stored || waitMs === undefined || (outcome === 'unreachable' && isToGiveUp(stored, now))
    if (isOver) return this.#forget(held, stored, outcome)
    await this.#writeAgain(held, { ...stored, attempts: stored.attempts + 1 }, now + waitMs)
  }

  async #tryToEnd(stored: StoredServerSession, ender: SessionEnder, sweep: Sweep): Promise<EndOutcome> {
    sweep.tried++
    const outcome = await endAtServer(ender, stored)
    if (outcome === 'unreachable') this.#silent.didNotRespond(ender, Date.now())
    else if (outcome !== undefined) this.#silent.hasResponded(ender)
    return outcome ?? 'refused'
  }

  async #writeAgain(held: Held, stored: StoredServerSession, retryAt: number): Promise<void> {
    const now = Date.now()
    const giveUpAt = stored.giveUpAt ?? now + GIVE_UP_MS
    const expires = giveUpAt > now ? Math.min(retryAt, giveUpAt) : retryAt
    this.#retryAt = Math.min(this.#retryAt, expires)
    await this.#options.store.write(held, encodeStored({ ...stored, giveUpAt }), { expires })
  }

  #forget(held: Held, stored: StoredServerSession | undefined, outcome: EndOutcome | undefined): Promise<void> {
    const { store, log } = this.#options
    log.debug({ server: stored?.server, outcome }, 'abandoned session forgotten without ending it at its server')
    return store.remove(held)
  }

  #enderOf({ server, url }: StoredServerSession): SessionEnder | undefined {
    const ender = this.#servers.get(server)
    if (ender?.url === url) return ender
    const former = this.#former.get(formerKey(server, url))
    return former && former.until >= Date.now() ? former.ender : undefined
  }
}

const isToGiveUp = ({ giveUpAt }: StoredServerSession, now: number): boolean =>
  giveUpAt !== undefined && giveUpAt <= now

const formerKey = (name: string, url: string): string => `${url} ${name}`

/** Undefined if the server was not asked: for example, the caller has no credentials in the configuration any more. */
const endAtServer = (ender: SessionEnder, stored: StoredServerSession): Promise<EndOutcome | undefined> =>
  within(END_MS, ender.end(stored), () => 'unreachable' as const).catch(() => undefined)
