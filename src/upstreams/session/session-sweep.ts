import { SteadyClock } from '../../std/steady-clock.ts'
import { within } from '../../std/time.ts'
import type { Claim, Held, StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { decodeStored, encodeStored, type StoredServerSession } from './stored-server-session.ts'

/** Ends a session at its server; `unreachable`: it may be there still; `other`: the server is another one now. */
export type EndSession = (stored: StoredServerSession) => Promise<'ended' | 'unreachable' | 'other'>

interface SweepOptions {
  readonly store: StateStore
  readonly log: Log
  /** True if the session is open in this process: then it is not abandoned. */
  keepIfLive(held: Held): boolean
  /** Writes the records of all open sessions again. */
  refreshAll(): void
}

const MOST = 100 // sessions in one sweep
const SWEEP_MS = 10_000
const EXPIRED_EVERY = 6 // sweeps: a client may still come back to a session that has not expired
const AT_ONCE = 10
const END_MS = 5000 // for a server to answer
const MOST_ATTEMPTS = 3
const MOST_UNENDED = 10_000 // further ones end when they expire
const RETRY_MS = 10 * 60_000 // until a server that could not be reached is tried again

/**
 * Ends sessions at servers that have no process any more: soon those that no other process could go on with, the others
 * when no client has come back to them until they expired.
 */
export class SessionSweep {
  readonly #options: SweepOptions
  readonly #servers = new Map<string, EndSession>() // by name
  readonly #timer: NodeJS.Timeout
  readonly #clock = new SteadyClock()
  readonly #waiting = new Map<string, string>() // claimed by an earlier sweep: the client's session, by record id
  readonly #unended: Claim[] = [] // of sessions that this process has closed while their server or the store was away
  #count = 0
  #running: Promise<number> | undefined

  constructor(options: SweepOptions) {
    this.#options = options
    this.#timer = setInterval(() => this.#tick(), SWEEP_MS).unref()
  }

  addServer(name: string, end: EndSession): void {
    this.#servers.set(name, end)
  }

  removeServer(name: string): void {
    this.#servers.delete(name)
  }

  /** The next sweep ends that session, unless it is open again by then. */
  endSoon(claim: Claim): void {
    if (this.#unended.length < MOST_UNENDED) this.#unended.push(claim)
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
    this.run(++this.#count % EXPIRED_EVERY === 0).catch((error: unknown) =>
      this.#options.log.debug({ err: error }, 'abandoned sessions with servers not swept'),
    )
  }

  async #sweep(takesExpired: boolean): Promise<number> {
    const { store, log, keepIfLive } = this.#options
    const taken = await store.takeAbandoned('transient-server-session', 'orphaned', MOST)
    taken.push(...(await this.#takeUnended(MOST - taken.length)))
    taken.push(...(await this.#takeOwnerless(MOST - taken.length)))
    if (takesExpired)
      for (const kind of ['server-session', 'transient-server-session'] as const)
        taken.push(...(await store.takeAbandoned(kind, 'expired', MOST - taken.length)))
    const abandoned = taken.filter(held => !keepIfLive(held))
    for (let at = 0; at < abandoned.length; at += AT_ONCE)
      await Promise.all(abandoned.slice(at, at + AT_ONCE).map(held => this.#end(held)))
    if (abandoned.length > 0) log.info({ sessions: abandoned.length }, 'abandoned sessions with servers ended')
    return abandoned.length
  }

  async #takeUnended(limit: number): Promise<Held[]> {
    const { store } = this.#options
    const held: Held[] = []
    for (let claim = this.#unended[0]; claim && held.length < limit; claim = this.#unended[0]) {
      const taken = await store.take(claim.kind, claim.id)
      this.#unended.shift()
      if (taken.kind === 'mine') held.push(taken.held)
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

  async #end(held: Held): Promise<void> {
    const { store, log } = this.#options
    const stored = decodeStored(held.body)
    const outcome = stored && (await this.#endAtServer(stored))
    if (stored && outcome === 'unreachable' && stored.attempts + 1 < MOST_ATTEMPTS) {
      const body = encodeStored({ ...stored, attempts: stored.attempts + 1 })
      await store.write(held, body, { expires: Date.now() + RETRY_MS })
      return
    }
    if (outcome !== 'ended')
      log.debug({ server: stored?.server, outcome }, 'abandoned session forgotten without ending it at its server')
    await store.remove(held)
  }

  async #endAtServer(stored: StoredServerSession): ReturnType<EndSession> {
    const end = this.#servers.get(stored.server)
    if (!end) return 'other'
    return within(END_MS, end(stored), () => 'unreachable' as const).catch(() => 'unreachable' as const)
  }
}
