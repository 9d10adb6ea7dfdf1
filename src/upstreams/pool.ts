import type { PoolManner } from '../config/snapshot.ts'
import type { Caller, Peer } from '../protocol/exchange.ts'
import { keptCaller } from '../protocol/kept-caller.ts'
import { DISCONNECTED, type Loss, UpstreamFailure } from './failures.ts'
import { leaseOf } from './lease.ts'
import { poolKey } from './pool-key.ts'

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
  readonly manner?: PoolManner | undefined
  readonly most?: number // sessions shared by callers without one of their own
  /** Opens a session for that caller; rejects with UpstreamFailure. */
  readonly open: (caller: Caller, place: Place) => Promise<S>
}

interface Entry<S extends Pooled> {
  readonly isDedicated: boolean
  readonly idleMs: number
  ready: Promise<S> | undefined
  session: S | undefined // once it is ready
}

const MOST_SHARED = 256
const LANE_IDLE_MS = 60_000 // a further session of somebody who has one already
const QUEUE_MS = 5000
const LOOK_MS = 100
const HANDED_MS = 1000 // for whoever was given a session to send something on it
const EXHAUSTED: Loss = { reason: 'pool_exhausted', text: 'has as many sessions as it may: try again later' }

/** Decides which session a caller gets; nothing is shared between principals. */
export class SessionPool<S extends Pooled> {
  readonly #options: Options<S>
  readonly #entries = new Map<string | symbol, Entry<S>>()
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
    const create = (): Promise<Peer> =>
      key === undefined ? this.#create(Symbol('isolated'), caller).then(leaseOf) : this.#create(key, caller)
    if (caller.session !== undefined || this.#hasRoom()) return create()
    return this.#waitForRoom().then(() => (key === undefined ? undefined : this.#known(key)) ?? create())
  }

  #known(key: string): Promise<S> | undefined {
    const entry = this.#entries.get(key)
    if (entry?.session) entry.session.lastUsed = Date.now()
    return entry?.ready
  }

  /** Room for one more; the session that has been unused for longest gives way. */
  #hasRoom(): boolean {
    const { most = MOST_SHARED } = this.#options
    if (this.#entries.size < most) return true
    const shared = [...this.#entries].filter(([, { isDedicated }]) => !isDedicated)
    if (shared.length < most) return true
    // One that was handed out just now is not busy yet, and its new user could not use it any more.
    const handed = Date.now() - HANDED_MS
    const idle = shared.flatMap(([, { session }]) =>
      session && !session.isBusy && session.lastUsed < handed ? session : [],
    )
    const [oldest] = idle.sort((a, b) => a.lastUsed - b.lastUsed)
    void oldest?.close()
    return oldest !== undefined
  }

  async #waitForRoom(): Promise<void> {
    for (let waited = 0; waited < QUEUE_MS; waited += LOOK_MS) {
      await new Promise(resolve => setTimeout(resolve, LOOK_MS))
      if (this.#hasRoom()) return
    }
    throw new UpstreamFailure(this.#options.name, EXHAUSTED)
  }

  /** Settles when every session has ended at the server, also those that were about to. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    const failed = () => {} // whoever opened it was told
    await Promise.all(entries.map(({ ready }) => ready?.then(session => session.close(), failed)))
    await Promise.allSettled(this.#leaving)
  }

  #create(key: string | symbol, caller: Caller): Promise<S> {
    const idleMs = caller.lane ? Math.min(LANE_IDLE_MS, this.#options.idleMs) : this.#options.idleMs
    const isDedicated = caller.session !== undefined
    const entry: Entry<S> = { isDedicated, idleMs, ready: undefined, session: undefined }
    this.#entries.set(key, entry)
    entry.ready = this.#fill(key, entry, keptCaller(caller)) // a session outlives the request it is opened for
    this.#sweep()
    return entry.ready
  }

  async #fill(key: string | symbol, entry: Entry<S>, caller: Caller): Promise<S> {
    const forget = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
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
