import { randomUUID } from 'node:crypto'
import { within } from '../../std/time.ts'
import { type Claim, type Held, StateError, type StateStore } from '../../stores/state/state-store.ts'
import type { Log } from '../../telemetry/log.ts'
import { decodeStored, encodeStored, type SessionOwner, type StoredServerSession } from './stored-server-session.ts'

/** What a session says about itself whenever that changes. */
type SessionState = Pick<StoredServerSession, 'sessionId' | 'handshake' | 'isReady' | 'hasStream'>

/** A session that the gateway ends before it has recorded it. */
type UnrecordedSession = Pick<StoredServerSession, 'sessionId' | 'handshake'>

/** The record of one session with a server, through which a later process goes on with it. */
export interface ServerSessionRecord {
  /** The session as an earlier process, or another replica, left it. */
  readonly stored: StoredServerSession | undefined
  readonly lastId: number // of the requests before: at most so high
  /** Stores what has changed, with the next batch. */
  save(state: SessionState): void
  /** Whether this process is to end the session at the server: not if a later one, or another replica, goes on with it. */
  mayEnd(): Promise<boolean>
  /** The session is closed here. Unless it has ended at the server, too, its record stays, and the sweep ends it. */
  closed(hasEnded: boolean): void
  /** Records another session, which is just being ended, if `hasEnded` resolves with false: then the sweep ends it. */
  recordUnlessEnded(other: UnrecordedSession, hasEnded: Promise<boolean>): void
  /** `listener` is called when another replica has taken the session. */
  onLost(listener: () => void): void
}

/** For sessions that are not recorded: each ends with its process. */
export const NO_RECORD: ServerSessionRecord = {
  stored: undefined,
  lastId: 0,
  save: () => {},
  mayEnd: () => Promise.resolve(true),
  closed: () => {},
  recordUnlessEnded: () => {},
  onLost: () => {},
}

/** Where a session is recorded. */
export interface RecordPlace {
  readonly id: string | undefined // undefined: no later process can go on with the session
  readonly isNew?: boolean // the client's session is being opened: an earlier process can have left nothing there
  readonly owner: SessionOwner
  readonly lifetimeMs: number // after which a session without a process is ended
}

/** What the records of all sessions share. */
export interface RecordContext {
  readonly store: StateStore
  readonly log: Log
  /** Calls `write` with the next batch. */
  schedule(record: LiveRecord): void
  closed(record: LiveRecord): void
  /** Calls `write` with the next sweep: it has failed, and the session of that record may still be open at its server. */
  storeSoon(write: () => Promise<void>): void
  /** The last write of a closed record, which the end of the process waits for. */
  finishing(write: Promise<void>): void
  /** Lets the sweep end the session of that record: it was closed here, and may still be open at its server. */
  endSoon(claim: Claim, recordAgain: () => Promise<void>): void
  isStopping(): boolean // sessions that can be continued are not ended any more
}

const CHECK_MS = 500 // for the store to say whether a session is still this replica's
const REFRESH_SHARE = 0.25 // of its lifetime, after which a record is written again
const IDS_PER_EPOCH = 2 ** 32

/** The record of an open session. Its writes follow one another. */
export class LiveRecord implements ServerSessionRecord {
  readonly stored: StoredServerSession | undefined
  readonly lastId: number
  readonly #context: RecordContext
  readonly #place: RecordPlace
  #id: string
  #canContinue: boolean // a later process can go on with the session
  #state: SessionState | undefined
  #claim: Claim | undefined
  #storedId: string | undefined // of the session, as the store has it
  #writtenAt: number | undefined // undefined: what is to be stored has changed
  #writing: Promise<void> = Promise.resolve()
  #isLost = false
  #isClosed = false
  #listener: () => void = () => {}

  /** `held`: what an earlier process, or another replica, left at this place. */
  constructor(context: RecordContext, place: RecordPlace, held: Held | undefined) {
    this.#context = context
    this.#place = place
    this.#canContinue = place.id !== undefined
    this.#id = place.id ?? randomUUID()
    this.#claim = held
    this.#state = this.stored = held && decodeStored(held.body)
    this.#storedId = this.stored?.sessionId
    this.lastId = held ? held.epoch * IDS_PER_EPOCH : 0
    if (held) context.schedule(this) // from now on it expires later
  }

  get id(): string {
    return this.#id
  }

  /** Resolves when everything that was to be written has been, or could not be. */
  get settled(): Promise<void> {
    return this.#writing
  }

  save(state: SessionState): void {
    if (this.#isClosed) return
    this.#state = state
    this.#writtenAt = undefined
    this.#context.schedule(this)
  }

  isOld(now: number): boolean {
    return now - (this.#writtenAt ?? 0) >= this.#place.lifetimeMs * REFRESH_SHARE
  }

  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#write()).catch((error: unknown) => this.#failed(error))
    return this.#writing
  }

  async mayEnd(): Promise<boolean> {
    if (this.#isLost) return false
    const isKept = this.#context.isStopping() && this.#canContinue
    if (isKept ? this.#claim && this.#writtenAt !== undefined : !this.#claim) return !isKept
    if (!isKept && !this.#context.store.isShared) return true // no other replica can have taken it
    const isKnown = await within(
      CHECK_MS,
      this.write().then(() => true),
      () => false,
    )
    const isAway = this.#context.store.health().state === 'away' // another replica may have taken it unseen
    if (this.#isLost || isAway || !isKnown) return false // if it has no process any more, the sweep ends it
    return !(isKept && this.#claim && this.#canContinue)
  }

  closed(hasEnded: boolean): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const { closed, endSoon, finishing } = this.#context
    closed(this)
    const isStored = this.#claim && !this.#isLost && this.#storedId === this.#state?.sessionId
    if (!hasEnded && this.#claim && isStored) return endSoon(this.#claim, () => this.#recordEnd()) // now: a write may hang
    const write = () => (hasEnded ? this.#remove() : this.#leave())
    this.#writing = this.#writing
      .then(write)
      .catch((error: unknown) => this.#failed(error, hasEnded ? undefined : write))
    finishing(this.#writing)
  }

  recordUnlessEnded({ sessionId, handshake }: UnrecordedSession, hasEnded: Promise<boolean>): void {
    const state = { sessionId, handshake, isReady: false, hasStream: false }
    const write = async (): Promise<void> => {
      if (!(await hasEnded)) await this.#recordEnd(state)
    }
    this.#context.finishing(write().catch((error: unknown) => this.#failed(error, write)))
  }

  onLost(listener: () => void): void {
    this.#listener = listener
  }

  /** Another replica holds what this claim was for. */
  lose(claim: Claim): void {
    if (this.#claim?.epoch !== claim.epoch || this.#isLost) return
    this.#isLost = true
    this.#context.closed(this)
    this.#listener()
  }

  /** This replica has claimed the record once more. */
  renew(claim: Claim): void {
    this.#claim = claim
    this.#context.schedule(this)
  }

  async #write(): Promise<void> {
    const { store } = this.#context
    const [claim, state] = [this.#claim, this.#state]
    if (!state || this.#isClosed || this.#isLost) return
    const { body, expires } = this.#contentOf(state)
    if (!claim) this.#claim = await this.#create(body, expires)
    else if (!(await store.write(claim, body, { expires }))) {
      if (await store.read(claim.kind, claim.id)) return this.lose(claim)
      this.#claim = await this.#create(body, expires) // the store has lost what it had
    }
    this.#storedId = state.sessionId
    if (this.#state === state) this.#writtenAt = Date.now()
  }

  #contentOf(state: SessionState): { readonly body: Buffer; readonly expires: number } {
    const { owner, lifetimeMs } = this.#place
    return { body: encodeStored({ ...owner, ...state, attempts: 0 }), expires: Date.now() + lifetimeMs }
  }

  /** Where another replica has a session of the same caller, this one is recorded only so that the sweep can end it. */
  async #create(body: Buffer, expires: number): Promise<Claim> {
    const { store, schedule, closed } = this.#context
    if (this.#canContinue)
      try {
        return await store.create('server-session', this.#id, body, { expires })
      } catch (error) {
        if (!(error instanceof StateError) || error.reason !== 'exists') throw error
        closed(this)
        this.#id = randomUUID()
        this.#canContinue = false
        schedule(this)
      }
    return store.create('transient-server-session', this.#id, body, { expires })
  }

  async #remove(): Promise<void> {
    if (this.#claim) await this.#context.store.remove(this.#claim)
  }

  /**
   * Records a closed session only so that the sweep can end it: the store has nothing, or the session that it is in place of,
   * or the record was lost with the lease of this replica before the store had it. Else another replica goes on with it.
   */
  async #leave(): Promise<void> {
    const { store, endSoon } = this.#context
    const [claim, state] = [this.#claim, this.#state]
    if (!state) return
    if (claim && !this.#isLost) {
      const { body, expires } = this.#contentOf(state)
      const isStored = this.#storedId === state.sessionId || (await store.write(claim, body, { expires }))
      return isStored ? endSoon(claim, () => this.#recordEnd()) : this.#recordEnd()
    }
    const held = claim && (await store.read(claim.kind, claim.id))
    if (held && decodeStored(held.body)?.sessionId === state.sessionId) return
    await this.#recordEnd()
  }

  /** The store has no record of the session, which is to end. */
  async #recordEnd(state = this.#state): Promise<void> {
    const { store, endSoon } = this.#context
    if (!state) return
    const { body, expires } = this.#contentOf(state)
    const claim = await store.create('transient-server-session', randomUUID(), body, { expires })
    endSoon(claim, () => this.#recordEnd(state))
  }

  /** `write` is tried again with the next sweep. */
  #failed(error: unknown, write?: () => Promise<void>): void {
    this.#context.log.debug({ err: error }, 'record of a session with a server not written')
    if (write) this.#context.storeSoon(write)
  }
}
