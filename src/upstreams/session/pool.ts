import { DEFAULT_LIMITS, type SessionPooling } from '../../config/snapshot.ts'
import { compactCaller, principalKey } from '../../protocol/callers.ts'
import { boundedKey, capabilitiesFingerprint } from '../../protocol/capabilities.ts'
import type { Caller, Peer } from '../../protocol/exchange.ts'
import { DISCONNECTED, type FailureDetails, forOtherCallers, UpstreamFailure } from '../failures.ts'
import { leaseSession } from './lease.ts'

/** A conversation with a server that keeps state between requests, whatever its transport. */
export interface Pooled extends Peer {
  readonly correlates: boolean
  readonly isBusy: boolean
  readonly lastUsed: number
  /** Sets `lastUsed` to now. */
  touch(): void
  close(): Promise<void>
}

/** Which session a caller gets. */
export interface PoolPlace {
  readonly key: string | undefined // equal for callers that share a session; undefined: a session for each request
  readonly isDedicated: boolean // belongs to one client session
  readonly owner: string // whose share it counts in; the dedicated ones are not counted
}

/** What a new session is told by the pool. */
export interface PoolSlot {
  readonly index: number // 0: the caller's first session; otherwise a further one
  readonly key: string | undefined // as in PoolPlace
  readonly owner: string // as in PoolPlace
  readonly isDedicated: boolean // belongs to one client session, and ends when its last listener leaves
  /** To be called once, as soon as the session cannot be used; `closing` settles when the server knows of its end. */
  readonly onClosed: (closing: Promise<void>) => void
}

interface PoolOptions<S extends Pooled> {
  readonly name: string // of the server
  readonly idleMs: number // after which an unused session is closed
  /** `index` as in `Upstream.open`. */
  readonly placeOf: (caller: Caller, index: number) => PoolPlace
  readonly perPrincipal?: number | undefined // most sessions that are not dedicated
  /** Opens a session for that caller; rejects with UpstreamFailure. */
  readonly open: (caller: Caller, slot: PoolSlot) => Promise<S>
}

interface PoolEntry<S extends Pooled> {
  readonly isDedicated: boolean
  readonly owner: string
  readonly bytes: number // retained of its caller
  readonly idleMs: number
  ready: Promise<S> | undefined
  session: S | undefined // once it is ready
}

const LONGEST_AFFINITY = 64 // characters; a longer one is replaced by its hash
const TOTAL_SHARES = 4 // so many principals can have all the sessions they may have
const BYTES_PER_PRINCIPAL = 2 * 1024 * 1024 // of capabilities and client info
const ALWAYS = 4 // sessions that a principal may have even if the pool is full
const FURTHER_IDLE_MS = 60_000 // for a further session of a caller that has one already
const HANDED_MS = 1000 // for a caller to send a request on the session it was given
const WAIT_MS = 5000 // for room in a full pool
const POLL_MS = 100
const MOST_WAITING = 1000 // of one owner
const EXHAUSTED: FailureDetails = { reason: 'pool_exhausted', text: 'has as many sessions as it may: try again later' }

/** The sessions of one owner. */
interface Share {
  count: number
  bytes: number
}

const NO_SHARE: Share = { count: 0, bytes: 0 }

/** Callers that wait for a session another caller opens may be other users. */
const refuseOthers = (thrown: unknown): never => {
  throw forOtherCallers(thrown)
}

/**
 * The owner a session counts for: its principal. Anonymous callers share one owner, and so do all callers of a
 * stateless pool.
 */
const ownerOf = ({ principal }: Caller, manner: SessionPooling): string =>
  principalKey(manner === 'stateless' ? undefined : principal)

/** The place of a caller at a server that is used in that manner: client sessions share nothing. */
export const poolPlace = (caller: Caller, manner: SessionPooling = 'sticky', index = 0): PoolPlace => ({
  key: poolKey(caller, manner, index),
  isDedicated: caller.session !== undefined,
  owner: ownerOf(caller, manner),
})

const poolKey = (caller: Caller, manner: SessionPooling, index: number): string | undefined => {
  const { workspace, principal, session, capabilities, affinity = '' } = caller
  if (session !== undefined) return JSON.stringify(['session', workspace, session])
  // Two anonymous requests may be of different users.
  if (principal === undefined || manner === 'isolated') return undefined
  const owner = manner === 'stateless' ? [] : [principal, boundedKey(affinity, LONGEST_AFFINITY)]
  return JSON.stringify(['shared', workspace, capabilitiesFingerprint(capabilities), index, ...owner])
}

/** Decides which session a caller gets; nothing is shared between principals. */
export class SessionPool<S extends Pooled> {
  readonly #options: PoolOptions<S>
  readonly #entries = new Map<string | symbol, PoolEntry<S>>()
  readonly #shares = new Map<string, Share>() // by owner, of sessions that are not dedicated
  readonly #queue = new PoolQueue(owner => this.#makeRoom(owner))
  readonly #closing = new Set<Promise<void>>() // sessions whose servers may not know of their end yet
  #sweeper: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: PoolOptions<S>) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  /** The session this caller has already, if any. `index` as in `Upstream.open`. */
  find(caller: Caller, index = 0): Promise<Peer> | undefined {
    const { key } = this.#options.placeOf(caller, index)
    return key === undefined ? undefined : this.#known(key)
  }

  /** The session this caller has already, if it is open. */
  findOpen(caller: Caller): S | undefined {
    const { key } = this.#options.placeOf(caller, 0)
    const session = this.peek(key)
    session?.touch()
    return session
  }

  /** The open session with that key, which is not used by that. */
  peek(key: string | undefined): S | undefined {
    return key === undefined ? undefined : this.#entries.get(key)?.session
  }

  /** Opens a session for this caller; rejects with UpstreamFailure. */
  open(caller: Caller, index = 0): Promise<Peer> {
    const place = this.#options.placeOf(caller, index)
    const { key, owner } = place
    const known = key === undefined ? undefined : this.#known(key)
    if (known) return known
    const create = (): Promise<Peer> => {
      if (key === undefined) return this.#create(Symbol('isolated'), caller, index, place).then(leaseSession)
      return this.#known(key) ?? this.#create(key, caller, index, place)
    }
    if (place.isDedicated || this.#makeRoom(owner)) return create()
    return new Promise((resolve, reject) => {
      this.#queue.join(owner, {
        start: () => resolve(create()),
        refuse: () => reject(new UpstreamFailure(this.#options.name, EXHAUSTED)),
      })
    })
  }

  /** Resolves when every session has ended at its server, also those that are being closed. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeper)
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    this.#shares.clear()
    const failed = () => {} // the caller that opened it has the failure
    await Promise.all(entries.map(({ ready }) => ready?.then(session => session.close(), failed)))
    await Promise.allSettled(this.#closing)
  }

  #known(key: string): Promise<S> | undefined {
    const entry = this.#entries.get(key)
    if (!entry?.session) return entry?.ready?.catch(refuseOthers)
    entry.session.touch()
    return entry.ready
  }

  /** Whether that owner may open one more session; closes an unused one for it: its own, or of the largest owner. */
  #makeRoom(owner: string): boolean {
    const { perPrincipal = DEFAULT_LIMITS.principalUpstreamSessions } = this.#options
    const own = this.#shares.get(owner) ?? NO_SHARE
    let hasClosed = false
    while (own.count >= perPrincipal || (own.bytes > BYTES_PER_PRINCIPAL && own.count > ALWAYS)) {
      if (!this.#closeOldest(owner)) return false
      hasClosed = true
    }
    if (hasClosed) return true
    let total = 0
    let largest = owner
    for (const [other, { count }] of this.#shares) {
      total += count
      if (count > (this.#shares.get(largest)?.count ?? 0)) largest = other
    }
    return total < perPrincipal * TOTAL_SHARES || this.#closeOldest(largest) || own.count < ALWAYS
  }

  /** Closes the session of that owner that has been unused for longest; false if all are in use. */
  #closeOldest(owner: string): boolean {
    // A session that was handed out just now is not busy yet, but its caller is about to use it.
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

  #create(key: string | symbol, requester: Caller, index: number, { isDedicated, owner }: PoolPlace): Promise<S> {
    const caller = compactCaller(requester) // a session outlives the request it is opened for
    const { idleMs } = this.#options
    const entry: PoolEntry<S> = {
      isDedicated,
      owner,
      bytes: caller.capabilities.retained + (caller.info?.retained ?? 0),
      idleMs: index > 0 ? Math.min(FURTHER_IDLE_MS, idleMs) : idleMs,
      ready: undefined,
      session: undefined,
    }
    this.#entries.set(key, entry)
    this.#count(entry, 1)
    entry.ready = this.#fill(key, entry, caller, index)
    this.#startSweeper()
    return entry.ready
  }

  async #fill(key: string | symbol, entry: PoolEntry<S>, caller: Caller, index: number): Promise<S> {
    const remove = () => {
      if (this.#entries.get(key) !== entry) return
      this.#entries.delete(key)
      this.#count(entry, -1)
    }
    const onClosed = (closing: Promise<void>) => {
      remove()
      const gone = () => this.#closing.delete(closing)
      this.#closing.add(closing)
      closing.then(gone, gone)
    }
    try {
      if (this.#isClosed) throw new UpstreamFailure(this.#options.name, DISCONNECTED)
      const { isDedicated, owner } = entry
      const shared = typeof key === 'string' ? key : undefined
      const session = await this.#options.open(caller, { index, key: shared, owner, isDedicated, onClosed })
      session.touch() // the handshake may have taken long
      entry.session = session
      return session
    } catch (error) {
      remove()
      throw error
    }
  }

  #count({ isDedicated, owner, bytes }: PoolEntry<S>, by: 1 | -1): void {
    if (isDedicated) return
    const share = this.#shares.get(owner) ?? { count: 0, bytes: 0 }
    this.#shares.set(owner, share)
    share.count += by
    share.bytes += by * bytes
    if (share.count === 0) this.#shares.delete(owner)
  }

  #startSweeper(): void {
    this.#sweeper ??= setInterval(() => this.#closeIdle(), Math.min(60_000, this.#options.idleMs / 2)).unref()
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

/** A caller that waits for a session. */
interface PoolWaiter {
  /** There is room, which the caller takes before this returns. */
  start(): void
  refuse(): void
}

interface QueuedWaiter {
  readonly waiter: PoolWaiter
  readonly until: number
}

/** Callers that wait for room in a pool, in order for each owner. One timer polls for all of them. */
class PoolQueue {
  readonly #makeRoom: (owner: string) => boolean
  readonly #queues = new Map<string, QueuedWaiter[]>() // by owner
  #timer: NodeJS.Timeout | undefined

  /** `makeRoom` returns whether an owner may open one more session. */
  constructor(makeRoom: (owner: string) => boolean) {
    this.#makeRoom = makeRoom
  }

  /** Starts the waiter as soon as there is room for its owner, or refuses it after five seconds. */
  join(owner: string, waiter: PoolWaiter): void {
    const queue = this.#queues.get(owner) ?? []
    if (queue.length >= MOST_WAITING) return waiter.refuse()
    queue.push({ waiter, until: Date.now() + WAIT_MS })
    this.#queues.set(owner, queue)
    this.#timer ??= setInterval(() => this.#poll(), POLL_MS)
  }

  #poll(): void {
    const now = Date.now()
    for (const [owner, queue] of this.#queues) {
      while (queue.length > 0 && this.#makeRoom(owner)) queue.shift()?.waiter.start()
      while (queue[0] && queue[0].until <= now) queue.shift()?.waiter.refuse()
      if (queue.length === 0) this.#queues.delete(owner)
    }
    if (this.#queues.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
