import type { Caller } from '../../protocol/exchange.ts'
import { fingerprint } from '../../protocol/fingerprint.ts'
import { isModern } from '../../protocol/revisions.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { CacheEntry, FetchResult } from './cache-entry.ts'

const MOST_OWNERS = 1000
const MOST_PER_PRINCIPAL = 64 // sets of capabilities: only so many kinds of clients are in use at a time
const MOST_BYTES = 128 * 1024 * 1024 // of everything held, as its servers wrote it
const LOOK_MS = 1000 // between two countings of the bytes
const IDLE_MS = 3_600_000

type Entries<T> = Map<string, CacheEntry<T>>

/** Equal for callers to whom a public list reads the same: a server of both eras may list differently in each. */
const publicKeyOf = ({ revision, capabilities }: Caller): string =>
  `${isModern(revision) ? 'modern' : 'legacy'} ${fingerprint(capabilities)}`

/** Equal for callers to whom a server tells the same; those nobody knows look all the same to it. */
export const cacheOwnerOf = (caller: Caller): string =>
  `${caller.principal === undefined ? '' : `=${caller.principal}`}\n${publicKeyOf(caller)}`

/** How much is held at a time. */
interface CacheBounds<T> {
  readonly bytesOf?: (value: T) => number
  readonly mostBytes?: number
}

// No fingerprint has a line break in it.
const principalOf = (owner: string): string => owner.slice(0, owner.lastIndexOf('\n'))

/** Whom a change concerns. */
export type CacheScope =
  | { readonly kind: 'session'; readonly session: string }
  | { readonly kind: 'owner'; readonly owner: string }
  | { readonly kind: 'everybody' }

type Create<T> = (key: string, concern: CacheScope) => CacheEntry<T>

/**
 * What is held of servers, for whom: most of it for a principal with certain capabilities; what a server calls public
 * for everybody with those capabilities; what changed within one session for that session alone.
 */
export class CacheScopes<T> {
  readonly #create: Create<T>
  readonly #bytesOf: (value: T) => number
  readonly #mostBytes: number
  readonly #owners = createLru<T>()
  readonly #publics = createLru<T>() // by audience; each counts for the principal that published it
  #trimmedAt = Number.NEGATIVE_INFINITY
  #trimLater: NodeJS.Timeout | undefined
  readonly #sessions = new Map<string, Map<string, Entries<T>>>() // by session and owner: a pipe may say something else each time
  #latestSession: string | undefined // the session used last: its lists are kept, however large

  constructor(create: Create<T>, { bytesOf = () => 0, mostBytes = MOST_BYTES }: CacheBounds<T> = {}) {
    this.#create = create
    this.#bytesOf = bytesOf
    this.#mostBytes = mostBytes
  }

  /** Evicts what was not used for longest while there are too many bytes; to be called after something was accepted. */
  trim(): void {
    const now = Date.now()
    const waitMs = Math.min(this.#trimmedAt + LOOK_MS - now, LOOK_MS) // the clock may have been set back
    if (waitMs > 0) {
      this.#trimLater ??= setTimeout(() => this.#trimNow(), waitMs).unref()
      return
    }
    this.#trimNow()
  }

  #trimNow(): void {
    clearTimeout(this.#trimLater)
    this.#trimLater = undefined
    this.#trimmedAt = Date.now()
    while (this.#bytes() > this.#mostBytes) {
      const [more, less] = this.#owners.size > 1 ? [this.#owners, this.#publics] : [this.#publics, this.#owners]
      if (!this.#emptySessions() && !more.deleteOldest() && !less.deleteOldest()) return
    }
  }

  /** Where to look for things for a caller; `key` says of what it is. */
  finder(caller: Caller): (key: string) => CacheEntry<T> {
    const own = this.#apart(caller)
    const open = this.#publics.get(publicKeyOf(caller))
    const owner = cacheOwnerOf(caller)
    return key => own?.get(key) ?? open?.get(key) ?? this.#in(this.#owners, owner, key, { kind: 'owner', owner })
  }

  find(caller: Caller, key: string): CacheEntry<T> {
    return this.finder(caller)(key)
  }

  /** What servers told the same principal with other capabilities; undefined where none told anything. */
  siblingFinder(caller: Caller): (key: string) => T | undefined {
    const principal = principalOf(cacheOwnerOf(caller))
    const shelves = this.#owners
      .entries()
      .flatMap(([owner, shelf]) => (principalOf(owner) === principal ? [shelf] : []))
    return key => shelves.findLast(shelf => shelf.get(key)?.value !== undefined)?.get(key)?.value
  }

  /** That of the caller's principal. */
  ownerEntry(caller: Caller, key: string): CacheEntry<T> {
    const owner = cacheOwnerOf(caller)
    return this.#in(this.#owners, owner, key, { kind: 'owner', owner })
  }

  /** One for this session alone, from now on; it begins with what its principal has. */
  apart(caller: Caller, session: string, key: string): CacheEntry<T> {
    const before = this.find(caller, key)
    const own = this.#ofSession(session, cacheOwnerOf(caller), key)
    if (own !== before) own.copyFrom(before)
    return own
  }

  /** Whether the caller's session has things of its own. */
  hasSessionEntries(caller: Caller): boolean {
    return this.#apart(caller) !== undefined
  }

  /** Whether the caller's session has that for itself. */
  isSessionEntry(caller: Caller, key: string): boolean {
    return this.#apart(caller)?.has(key) === true
  }

  endSession(session: string): void {
    const shelves = this.#sessions.get(session)
    if (session === this.#latestSession) this.#latestSession = undefined
    if (shelves && this.#sessions.delete(session)) for (const shelf of shelves.values()) closeAll(shelf)
  }

  /** Puts what a caller was told where it belongs by what its server said about it. */
  publish(caller: Caller, key: string, fetched: FetchResult<T>): void {
    const audience = publicKeyOf(caller)
    if (fetched.isPublic)
      return this.#in(this.#publics, audience, key, { kind: 'everybody' }, principalOf(cacheOwnerOf(caller))).store(
        fetched,
      )
    const open = this.#publics.get(audience)
    open?.get(key)?.close()
    open?.delete(key)
  }

  /** Begins with what another one holds under the keys that mean the same here. */
  copyFrom(before: CacheScopes<T>, means: (key: string) => boolean): void {
    const copy = (
      from: BoundedCache<Entries<T>>,
      into: BoundedCache<Entries<T>>,
      concernOf: (name: string) => CacheScope,
    ): void => {
      for (const [name, shelf] of from.entries())
        for (const [key, holding] of shelf)
          if (holding.value !== undefined && means(key))
            this.#in(into, name, key, concernOf(name), from.groupOf(name)).copyFrom(holding)
    }
    copy(before.#owners, this.#owners, owner => ({ kind: 'owner', owner }))
    copy(before.#publics, this.#publics, () => ({ kind: 'everybody' }))
    for (const [session, shelves] of before.#sessions)
      for (const [owner, shelf] of shelves)
        for (const [key, holding] of shelf)
          if (holding.value !== undefined && means(key)) this.#ofSession(session, owner, key).copyFrom(holding)
  }

  /** Everything held under that key. */
  entriesOf(key: string): CacheEntry<T>[] {
    const apart = [...this.#sessions.values()].flatMap(shelves => [...shelves.values()])
    const shelves = [...this.#owners.values(), ...this.#publics.values(), ...apart]
    return shelves.flatMap(shelf => shelf.get(key) ?? [])
  }

  clear(): void {
    clearTimeout(this.#trimLater)
    this.#trimLater = undefined
    this.#owners.clear()
    this.#publics.clear()
    for (const session of [...this.#sessions.keys()]) this.endSession(session)
  }

  /** Equal lists are one list, and count once. */
  #bytes(): number {
    const values = new Set<T>()
    const forkForSession = [...this.#sessions.values()].flatMap(shelves => [...shelves.values()])
    for (const shelf of [...this.#owners.values(), ...this.#publics.values(), ...forkForSession])
      for (const { value } of shelf.values()) if (value !== undefined) values.add(value)
    let bytes = 0
    for (const value of values) bytes += this.#bytesOf(value)
    return bytes
  }

  /** Empties the half of the sessions that was not used for longest; each stays apart and fetches its lists again. */
  #emptySessions(): boolean {
    const filled = [...this.#sessions].filter(
      ([session, shelves]) => session !== this.#latestSession && [...shelves.values()].some(holdsAny),
    )
    for (const [session, shelves] of filled.slice(0, Math.ceil(filled.length / 2)))
      for (const shelf of shelves.values())
        for (const [key, before] of shelf) {
          before.close()
          const empty = this.#create(key, { kind: 'session', session })
          empty.listenerCount = before.listenerCount
          shelf.set(key, empty)
        }
    return filled.length > 0
  }

  #apart(caller: Caller): Entries<T> | undefined {
    const { session } = caller
    const shelves = session === undefined ? undefined : this.#sessions.get(session)
    if (session === undefined || !shelves) return undefined
    this.#use(session, shelves)
    return shelves.get(cacheOwnerOf(caller))
  }

  /** Sessions stand in the order of their last use. */
  #use(session: string, shelves: Map<string, Entries<T>>): void {
    if (session === this.#latestSession) return
    this.#sessions.delete(session)
    this.#sessions.set(session, shelves)
    this.#latestSession = session
  }

  #ofSession(session: string, owner: string, key: string): CacheEntry<T> {
    const shelves = this.#sessions.get(session) ?? new Map<string, Entries<T>>()
    this.#sessions.set(session, shelves)
    this.#use(session, shelves)
    const shelf: Entries<T> = shelves.get(owner) ?? new Map()
    shelves.set(owner, shelf)
    return put(shelf, key, () => this.#create(key, { kind: 'session', session }))
  }

  #in(
    shelves: BoundedCache<Entries<T>>,
    name: string,
    key: string,
    concern: CacheScope,
    group: string | undefined = principalOf(name),
  ): CacheEntry<T> {
    let shelf = shelves.get(name)
    if (!shelf) {
      shelf = new Map()
      shelves.set(name, shelf, group)
    }
    return put(shelf, key, () => this.#create(key, concern))
  }
}

const createLru = <T>(): BoundedCache<Entries<T>> =>
  new BoundedCache<Entries<T>>(MOST_OWNERS, IDLE_MS, { evicted: closeAll, mostPerGroup: MOST_PER_PRINCIPAL })

const put = <T>(shelf: Entries<T>, key: string, create: () => CacheEntry<T>): CacheEntry<T> => {
  const holding = shelf.get(key) ?? create()
  shelf.set(key, holding)
  return holding
}

const holdsAny = <T>(shelf: Entries<T>): boolean => [...shelf.values()].some(({ value }) => value !== undefined)

const closeAll = <T>(shelf: Entries<T>): void => {
  for (const holding of shelf.values()) holding.close()
}
