import type { Caller, Peer } from '../protocol/exchange.ts'
import { DISCONNECTED, UpstreamFailure } from './failures.ts'
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
  readonly onClosed: () => void // to be called once, as soon as the session is of no use
}

interface Options<S extends Pooled> {
  readonly name: string // of the server
  readonly idleMs: number // after which a session nobody uses is closed
  /** Opens a session for that caller; rejects with UpstreamFailure. */
  readonly open: (caller: Caller, place: Place) => Promise<S>
}

interface Entry<S extends Pooled> {
  ready: Promise<S> | undefined
  session: S | undefined // once it is ready
}

/** Decides which session a caller gets; nothing is shared between principals. */
export class SessionPool<S extends Pooled> {
  readonly #options: Options<S>
  readonly #entries = new Map<string | symbol, Entry<S>>()
  #sweeper: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: Options<S>) {
    this.#options = options
  }

  /** The session this caller has already, if any. */
  find(caller: Caller): Promise<Peer> | undefined {
    const key = poolKey(caller)
    const entry = key === undefined ? undefined : this.#entries.get(key)
    if (entry?.session) entry.session.lastUsed = Date.now()
    return entry?.ready
  }

  /** Opens a session for this caller; rejects with UpstreamFailure. */
  open(caller: Caller): Promise<Peer> {
    const key = poolKey(caller)
    if (key === undefined) return this.#create(Symbol('isolated'), caller).then(leaseOf)
    return this.#entries.get(key)?.ready ?? this.#create(key, caller)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    const failed = () => {} // whoever opened it was told
    await Promise.all(entries.map(({ ready }) => ready?.then(session => session.close(), failed)))
  }

  #create(key: string | symbol, caller: Caller): Promise<S> {
    const entry: Entry<S> = { ready: undefined, session: undefined }
    this.#entries.set(key, entry)
    entry.ready = this.#fill(key, entry, caller)
    this.#sweep()
    return entry.ready
  }

  async #fill(key: string | symbol, entry: Entry<S>, caller: Caller): Promise<S> {
    const onClosed = () => {
      if (this.#entries.get(key) === entry) this.#entries.delete(key)
    }
    try {
      if (this.#isClosed) throw new UpstreamFailure(this.#options.name, DISCONNECTED)
      const session = await this.#options.open(caller, { isDedicated: caller.session !== undefined, onClosed })
      entry.session = session
      return session
    } catch (error) {
      onClosed()
      throw error
    }
  }

  #sweep(): void {
    if (this.#sweeper) return
    this.#sweeper = setInterval(() => this.#closeIdle(), Math.min(60_000, this.#options.idleMs / 2))
    this.#sweeper.unref()
  }

  #closeIdle(): void {
    const oldest = Date.now() - this.#options.idleMs
    for (const { session } of [...this.#entries.values()])
      if (session && !session.isBusy && session.lastUsed < oldest) void session.close()
    if (this.#entries.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}
