import { DEFAULT_LIMITS, type SessionPooling } from '../../config/snapshot.ts'
import type { Caller, Peer } from '../../protocol/exchange.ts'
import { keptCaller } from '../../protocol/kept-caller.ts'
import { DISCONNECTED, type FailureDetails, forOtherCallers, UpstreamFailure } from '../failures.ts'
import { leaseOf } from './lease.ts'
import { ownerOf, poolKey } from './pool-key.ts'
import { PoolQueue } from './pool-queue.ts'

/** A conversation with a server that keeps something between requests, whichever way it travels. */
export interface Pooled extends Peer {
  readonly correlates: boolean
  readonly isBusy: boolean
  lastUsed: number
  close(): Promise<void>
}

/** What a new session is told about its place in the pool. */
export interface Place {
  readonly isDedicated: boolean // belongs to one client session and ends with its standing exchange
  /** To be called once, as soon as the session is of no use, with what settles when the server knows of its end. */
  readonly onClosed: (closing: Promise<void>) => void
}

interface Options<S extends Pooled> {
  readonly name: string // of the server
  readonly idleMs: number // after which a session nobody uses is closed
  readonly manner?: SessionPooling | undefined
  readonly perPrincipal?: number | undefined // most sessions for callers without one of their own
  /** Opens a session for that caller; rejects with UpstreamFailure. */
  readonly open: (caller: Caller, place: Place) => Promise<S>
}

interface Entry<S extends Pooled> {
  readonly isDedicated: boolean
  readonly owner: string // for whom it counts
  readonly bytes: number // it keeps of its caller
  readonly idleMs: number
  ready: Promise<S> | undefined
  session: S | undefined // once it is ready
}

const TOTAL_SHARES = 4 // so many principals can have all the sessions they may have
const BYTES_PER_PRINCIPAL = 2 * 1024 * 1024 // of what its clients said of themselves
const ALWAYS = 4 // sessions that a principal may have even if the pool is full
const LANE_IDLE_MS = 60_000 // a further session of somebody who has one already
const HANDED_MS = 1000 // for whoever was given a session to send something on it
const EXHAUSTED: FailureDetails = { reason: 'pool_exhausted', text: 'has as many sessions as it may: try again later' }

interface Share {
  count: number
  bytes: number
}

const NO_SHARE: Share = { count: 0, bytes: 0 }

/** Callers that wait for a session another caller opens may be other users. */
const refuseOthers = (thrown: unknown): never => {
  throw forOtherCallers(thrown)
}

/** Decides which session a caller gets; nothing is shared between principals. */
export class SessionPool<S extends Pooled> {
  readonly #options: Options<S>
  readonly #entries = new Map<string | symbol, Entry<S>>()
  readonly #shares = new Map<string, Share>() // by owner, of sessions that are not dedicated
  readonly #queue = new PoolQueue(owner => this.#hasRoom(owner))
  readonly #leaving = new Set<Promise<void>>() // sessions of no use whose servers may not know it yet
  #sweeper: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: Options<S>) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  /** The session this caller has already, if any. */
  find(caller: Caller): Promise<Peer> | undefined {
    const key = poolKey(caller, this.#options.manner)
    return key === undefined ? undefined : this.#known(key)
  }

  /** Opens a session for this caller; rejects with UpstreamFailure. */
  open(caller: Caller): Promise<Peer> {
    const key = poolKey(caller, this.#options.manner)
    const known = key === undefined ? undefined : this.#known(key)
    if (known) return known
    const owner = ownerOf(caller, this.#options.manner)
    const create = (): Promise<Peer> => {
      if (key === undefined) return this.#create(Symbol('isolated'), caller, owner).then(leaseOf)
      return this.#known(key) ?? this.#create(key, caller, owner)
    }
    if (caller.session !== undefined || this.#hasRoom(owner)) return create()
    return new Promise((resolve, reject) => {
      this.#queue.join(owner, {
        start: () => resolve(create()),
        refuse: () => reject(new UpstreamFailure(this.#options.name, EXHAUSTED)),
      })
    })
  }

  #known(key: string): Promise<S> | undefined {
    const entry = this.#entries.get(key)
    if (!entry?.session) return entry?.ready?.catch(refuseOthers)
    entry.session.lastUsed = Date.now()
    return entry.ready
  }

  /** Room for one more session of that owner; one of its own gives way first, then one of the owner with the most. */
  #hasRoom(owner: string): boolean {
    const { perPrincipal = DEFAULT_LIMITS.principalUpstreamSessions } = this.#options
    const mine = this.#shares.get(owner) ?? NO_SHARE
    let hasGivenWay = false
    while (mine.count >= perPrincipal || (mine.bytes > BYTES_PER_PRINCIPAL && mine.count > ALWAYS)) {
      if (!this.#closeOldest(owner)) return false
      hasGivenWay = true
    }
    if (hasGivenWay) return true
    let all = 0
    let largest = owner
    for (const [other, { count }] of this.#shares) {
      all += count
      if (count > (this.#shares.get(largest)?.count ?? 0)) largest = other
    }
    return all < perPrincipal * TOTAL_SHARES || this.#closeOldest(largest) || mine.count < ALWAYS
  }

  /** Closes the session of that owner that has been unused for longest; false where all are in use. */
  #closeOldest(owner: string): boolean {
    // One that was handed out just now is not busy yet, and its new user could not use it any more.
    const handed = Date.now() - HANDED_MS
    let oldest: S | undefined
    for (const entry of this.#entries.values()) {
      const { session } = entry
      if (entry.isDedicated || entry.owner !== owner || !session || session.isBusy) continue
      if (session.lastUsed < Math.min(handed, oldest?.lastUsed ?? handed)) oldest = session
    }
    void oldest?.close()
    return oldest !== undefined
  }

  /** Settles when every session has ended at the server, also those that were about to. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    this.#shares.clear()
    const failed = () => {} // whoever opened it was told
    await Promise.all(entries.map(({ ready }) => ready?.then(session => session.close(), failed)))
    await Promise.allSettled(this.#leaving)
  }

  #create(key: string | symbol, asking: Caller, owner: string): Promise<S> {
    const caller = keptCaller(asking) // a session outlives the request it is opened for
    const idleMs = caller.lane ? Math.min(LANE_IDLE_MS, this.#options.idleMs) : this.#options.idleMs
    const isDedicated = caller.session !== undefined
    const bytes = caller.capabilities.retained + (caller.info?.retained ?? 0)
    const entry: Entry<S> = { isDedicated, owner, bytes, idleMs, ready: undefined, session: undefined }
    this.#entries.set(key, entry)
    this.#count(entry, 1)
    entry.ready = this.#fill(key, entry, caller)
    this.#sweep()
    return entry.ready
  }

  async #fill(key: string | symbol, entry: Entry<S>, caller: Caller): Promise<S> {
    const forget = () => {
      if (this.#entries.get(key) !== entry) return
      this.#entries.delete(key)
      this.#count(entry, -1)
    }
    const onClosed = (closing: Promise<void>) => {
      forget()
      this.#awaitEnd(closing)
    }
    try {
      if (this.#isClosed) throw new UpstreamFailure(this.#options.name, DISCONNECTED)
      const session = await this.#options.open(caller, { isDedicated: caller.session !== undefined, onClosed })
      session.lastUsed = Date.now() // the handshake may have taken long
      entry.session = session
      return session
    } catch (error) {
      forget()
      throw error
    }
  }

  #count({ isDedicated, owner, bytes }: Entry<S>, by: 1 | -1): void {
    if (isDedicated) return
    const share = this.#shares.get(owner) ?? { count: 0, bytes: 0 }
    this.#shares.set(owner, share)
    share.count += by
    share.bytes += by * bytes
    if (share.count === 0) this.#shares.delete(owner)
  }

  #awaitEnd(closing: Promise<void>): void {
    const gone = () => this.#leaving.delete(closing)
    this.#leaving.add(closing)
    closing.then(gone, gone)
  }

  #sweep(): void {
    if (this.#sweeper) return
    this.#sweeper = setInterval(() => this.#closeIdle(), Math.min(60_000, this.#options.idleMs / 2))
    this.#sweeper.unref()
  }

  #closeIdle(): void {
    const now = Date.now()
    for (const { session, idleMs } of [...this.#entries.values()])
      if (session && !session.isBusy && session.lastUsed < now - idleMs) void session.close()
    if (this.#entries.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}
