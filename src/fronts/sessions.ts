import { randomBytes } from 'node:crypto'
import type { Limits } from '../config/snapshot.ts'
import type { HoldGrant, Knock } from '../protocol/admission.ts'
import type { Caller } from '../protocol/exchange.ts'
import { isOwner } from './owner.ts'
import { Session } from './session.ts'
import type { House } from './visit.ts'

/** The legacy sessions, least recently used first, so that looking for idle ones costs nothing. */
export class Sessions {
  readonly #byId = new Map<string, Session>()
  readonly #release = new Map<Session, () => void>() // from the token it was opened with
  readonly #house: House
  readonly #limits: Limits
  readonly #hold: HoldGrant

  constructor(house: House, hold: HoldGrant = () => () => {}) {
    this.#house = house
    this.#hold = hold
    this.#limits = house.limits
    house.ticker.each(now => this.#sweep(now))
  }

  get size(): number {
    return this.#byId.size
  }

  /** A session with an id nobody can guess; it counts from `keep` on. */
  create(caller: Omit<Caller, 'session' | 'headers'>): Session {
    return new Session(randomBytes(32).toString('base64url'), caller, this.#house)
  }

  /** Keeps a session until it ends; it ends with the token of the request that opened it. */
  keep(session: Session, opener: Knock): void {
    this.#byId.set(session.id, session)
    this.#release.set(
      session,
      this.#hold(opener, () => this.end(session)),
    )
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
