import { randomBytes } from 'node:crypto'
import type { Limits } from '../../config/snapshot.ts'
import type { HoldGrant, RequestInfo } from '../../protocol/admission.ts'
import type { Caller } from '../../protocol/exchange.ts'
import { Quota } from '../../protocol/quota.ts'
import type { FrontContext } from '../http/front-request.ts'
import { isOwner } from '../sessions/owner.ts'
import { Session } from './session.ts'

const TOTAL_SHARES = 10 // so many principals can have all the sessions they may have
const BYTES_PER_OWNER = 16 * 1024 * 1024 // of what its clients said of themselves
const BUSY = 1e15 // ranks busy sessions after all idle ones

/** The legacy sessions, least recently used first, so that looking for idle ones costs nothing. */
export class Sessions {
  readonly #byId = new Map<string, Session>()
  readonly #release = new Map<Session, () => void>() // from the token it was opened with
  readonly #house: FrontContext
  readonly #limits: Limits
  readonly #hold: HoldGrant
  readonly #quota: Quota<Session>

  constructor(house: FrontContext, hold: HoldGrant = () => () => {}) {
    this.#house = house
    this.#hold = hold
    this.#limits = house.limits
    const { principalSessions: perOwner } = house.limits
    this.#quota = new Quota(
      { perOwner, bytesPerOwner: BYTES_PER_OWNER, total: perOwner * TOTAL_SHARES },
      ({ isBusy, lastUsed }) => (isBusy ? BUSY : 0) + lastUsed,
    )
    house.ticker.each(now => this.#sweep(now))
  }

  get size(): number {
    return this.#byId.size
  }

  /** A session with an id nobody can guess; it counts from `keep` on. */
  create(caller: Omit<Caller, 'session' | 'headers'>, owner: string): Session {
    return new Session(randomBytes(32).toString('base64url'), caller, owner, this.#house)
  }

  /** Keeps a session until it ends, or its token does; another session of its owner may have to end for it. */
  keep(session: Session, opener: RequestInfo): void {
    const { capabilities, info } = session.caller
    this.#byId.set(session.id, session)
    this.#release.set(
      session,
      this.#hold(opener, () => this.end(session)),
    )
    const evicted = this.#quota.add(session.owner, session, capabilities.retained + (info?.retained ?? 0))
    for (const other of evicted) {
      const { principal, workspace } = other.caller
      this.#house.log.debug({ principal, workspace }, 'session ended: its principal has too many')
      this.end(other)
    }
  }

  /** The session, if it is alive and belongs to this principal and workspace. */
  find(id: string, principal: string | undefined, workspace: string): Session | undefined {
    const session = this.#byId.get(id)
    if (!session || !isOwner(session, principal, this.#house.log) || session.caller.workspace !== workspace)
      return undefined
    this.#touch(session)
    return session
  }

  end(session: Session): void {
    this.#byId.delete(session.id)
    this.#release.get(session)?.()
    this.#release.delete(session)
    this.#quota.delete(session)
    session.end()
  }

  endAll(): void {
    for (const session of [...this.#byId.values()]) this.end(session)
  }

  /** Ends the sessions of a workspace that is no more; those with calls under way only if `all` are to. */
  endIn(workspace: string, all: boolean): void {
    for (const session of [...this.#byId.values()])
      if (session.caller.workspace === workspace && (all || session.running.size === 0)) this.end(session)
  }

  has(id: unknown, workspace: string): boolean {
    return typeof id === 'string' && this.#byId.get(id)?.caller.workspace === workspace
  }

  #touch(session: Session): void {
    session.lastUsed = Date.now()
    this.#byId.delete(session.id)
    this.#byId.set(session.id, session)
  }

  #sweep(now: number): void {
    for (const session of this.#byId.values()) {
      if (now - session.lastUsed < this.#limits.sessionIdleMs) return
      if (session.isBusy) this.#touch(session)
      else this.end(session)
    }
  }
}
