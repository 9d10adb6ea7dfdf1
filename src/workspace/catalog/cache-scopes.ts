import type { Caller } from '../../protocol/exchange.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import type { CacheEntry, FetchResult, Seed } from './cache-entry.ts'
import { type CacheScope, cacheOwnerOf, principalOf, publicKeyOf } from './cache-owner.ts'

const MOST_OWNERS = 1000
const MOST_PER_PRINCIPAL = 64 // sets of capabilities: only so many kinds of clients are in use at a time
const MOST_BYTES = 128 * 1024 * 1024 // of all values, as their servers wrote them
const TRIM_MS = 1000 // between two counts of the bytes
const IDLE_MS = 3_600_000

type Entries<T> = Map<string, CacheEntry<T>>

interface CacheBounds<T> {
  readonly bytesOf?: (value: T) => number
  readonly mostBytes?: number
}

type CreateEntry<T> = (key: string, scope: CacheScope) => CacheEntry<T>

/**
 * Cached values of servers, each visible in one scope only: to one principal with certain capabilities; to all callers
 * with those capabilities, if the server calls it public; or to one session, if it changed within that session.
 */
export class CacheScopes<T> {
  readonly #create: CreateEntry<T>
  readonly #bytesOf: (value: T) => number
  readonly #mostBytes: number
  readonly #owners = createScopeCache<T>()
  readonly #publics = createScopeCache<T>() // by public key; each counts for the principal that published it
  readonly #sessions = new Map<string, Map<string, Entries<T>>>() // by session and owner, the latest used last: a stdio client may change its capabilities
  #latestSession: string | undefined // never trimmed, however large its lists
  #trimmedAt = Number.NEGATIVE_INFINITY
  #trimTimer: NodeJS.Timeout | undefined

  constructor(create: CreateEntry<T>, { bytesOf = () => 0, mostBytes = MOST_BYTES }: CacheBounds<T> = {}) {
    this.#create = create
    this.#bytesOf = bytesOf
    this.#mostBytes = mostBytes
  }

  /** Evicts the least recently used values while there are too many bytes; must be called after a value was stored. */
  trim(): void {
    const waitMs = Math.min(this.#trimmedAt + TRIM_MS - Date.now(), TRIM_MS) // the clock may have been set back
    if (waitMs > 0) this.#trimTimer ??= setTimeout(() => this.#trimNow(), waitMs).unref()
    else this.#trimNow()
  }

  #trimNow(): void {
    clearTimeout(this.#trimTimer)
    this.#trimTimer = undefined
    this.#trimmedAt = Date.now()
    while (this.#bytes() > this.#mostBytes) {
      const [first, second] = this.#owners.size > 1 ? [this.#owners, this.#publics] : [this.#publics, this.#owners]
      if (!this.#emptySessions() && !first.deleteOldest() && !second.deleteOldest()) return
    }
  }

  /** Makes the function that finds the caller's entry for a key. */
  finder(caller: Caller): (key: string) => CacheEntry<T> {
    const own = this.#sessionEntriesOf(caller)
    const open = this.#publics.get(publicKeyOf(caller))
    const owner = cacheOwnerOf(caller)
    return key => own?.get(key) ?? open?.get(key) ?? this.#ownerEntry(owner, key)
  }

  find(caller: Caller, key: string): CacheEntry<T> {
    return this.finder(caller)(key)
  }

  /** The latest value that the principal of this owner was sent with other capabilities, if any. */
  siblingValue(owner: string, key: string): T | undefined {
    const principal = principalOf(owner)
    let latest: T | undefined
    for (const [other, entries] of this.#owners.entries())
      if (principalOf(other) === principal) latest = entries.get(key)?.value ?? latest
    return latest
  }

  /** Seeds the entries of a key that have no value yet; undefined: there is nothing to start with. */
  seedEmpty(key: string, seedOf: (owner: string) => Seed<T> | undefined): void {
    for (const [owner, entries] of this.#owners.entries()) {
      const entry = entries.get(key)
      const seed = entry && entry.value === undefined ? seedOf(owner) : undefined
      if (seed) entry?.seed(seed)
    }
  }

  /** Seeds the entries of a key that have no value of their own yet. */
  seedProvisional(key: string, seedOf: (owner: string) => Seed<T> | undefined): void {
    this.seedEmpty(key, seedOf)
    for (const [owner, entries] of this.#owners.entries()) {
      const entry = entries.get(key)
      const seed = entry?.isProvisional ? seedOf(owner) : undefined
      if (seed) entry?.confirm(seed)
    }
  }

  /** The entry in the scope of the caller's principal. */
  ownerEntry(caller: Caller, key: string): CacheEntry<T> {
    return this.#ownerEntry(cacheOwnerOf(caller), key)
  }

  /** Creates an entry for this session alone; it starts with the value the session has seen so far. */
  forkForSession(caller: Caller, session: string, key: string): CacheEntry<T> {
    const before = this.find(caller, key)
    const own = this.#sessionEntry(session, cacheOwnerOf(caller), key)
    if (own !== before) own.copyFrom(before)
    return own
  }

  hasSessionEntries(caller: Caller): boolean {
    return this.#sessionEntriesOf(caller) !== undefined
  }

  isSessionEntry(caller: Caller, key: string): boolean {
    return this.#sessionEntriesOf(caller)?.has(key) === true
  }

  endSession(session: string): void {
    const owners = this.#sessions.get(session)
    if (session === this.#latestSession) this.#latestSession = undefined
    if (owners && this.#sessions.delete(session)) for (const entries of owners.values()) closeAll(entries)
  }

  /** Stores a public value in the public scope; a value that is no longer public is removed from there. */
  publish(caller: Caller, key: string, fetched: FetchResult<T>): void {
    const publicKey = publicKeyOf(caller)
    if (fetched.isPublic) return this.#publicEntry(publicKey, key, principalOf(cacheOwnerOf(caller))).store(fetched)
    const open = this.#publics.get(publicKey)
    open?.get(key)?.close()
    open?.delete(key)
  }

  /** Starts with the values of another cache, for the keys that still mean the same. */
  copyFrom(previous: CacheScopes<T>, isSame: (key: string) => boolean): void {
    const copy = (entries: Entries<T>, entryOf: (key: string) => CacheEntry<T>): void => {
      for (const [key, entry] of entries) if (entry.value !== undefined && isSame(key)) entryOf(key).copyFrom(entry)
    }
    for (const [owner, entries] of previous.#owners.entries()) copy(entries, key => this.#ownerEntry(owner, key))
    for (const [name, entries] of previous.#publics.entries())
      copy(entries, key => this.#publicEntry(name, key, previous.#publics.groupOf(name)))
    for (const [session, owners] of previous.#sessions)
      for (const [owner, entries] of owners) copy(entries, key => this.#sessionEntry(session, owner, key))
  }

  /** The entries of a key that only callers of that principal see, as `principalOf` names it; undefined: of any principal. */
  privateEntriesOf(key: string, principal: string | undefined): CacheEntry<T>[] {
    const isOf = ([owner]: readonly [string, unknown]): boolean =>
      principal === undefined || principalOf(owner) === principal
    const ofSessions = [...this.#sessions.values()].flatMap(owners => [...owners])
    const found = [...this.#owners.entries(), ...ofSessions].filter(isOf)
    return found.flatMap(([, entries]) => entries.get(key) ?? [])
  }

  /** The entries of a key in all scopes. */
  entriesOf(key: string): CacheEntry<T>[] {
    return this.#allEntries().flatMap(entries => entries.get(key) ?? [])
  }

  clear(): void {
    clearTimeout(this.#trimTimer)
    this.#trimTimer = undefined
    this.#owners.clear()
    this.#publics.clear()
    for (const session of [...this.#sessions.keys()]) this.endSession(session)
  }

  #allEntries(): Entries<T>[] {
    const ofSessions = [...this.#sessions.values()].flatMap(owners => [...owners.values()])
    return [...this.#owners.values(), ...this.#publics.values(), ...ofSessions]
  }

  /** Equal lists are one object, and count once. */
  #bytes(): number {
    const values = new Set<T>()
    for (const entries of this.#allEntries())
      for (const { value } of entries.values()) if (value !== undefined) values.add(value)
    let bytes = 0
    for (const value of values) bytes += this.#bytesOf(value)
    return bytes
  }

  /** Empties the least recently used half of the sessions; each keeps its scope and fetches its lists again. */
  #emptySessions(): boolean {
    const filled = [...this.#sessions].filter(
      ([session, owners]) => session !== this.#latestSession && [...owners.values()].some(hasValue),
    )
    for (const [session, owners] of filled.slice(0, Math.ceil(filled.length / 2)))
      for (const entries of owners.values())
        for (const [key, before] of entries) {
          before.close()
          const empty = this.#create(key, { kind: 'session', session })
          empty.countListener(before.listenerCount)
          entries.set(key, empty)
        }
    return filled.length > 0
  }

  #sessionEntriesOf(caller: Caller): Entries<T> | undefined {
    const { session } = caller
    const owners = session === undefined ? undefined : this.#sessions.get(session)
    if (session === undefined || !owners) return undefined
    this.#markUsed(session, owners)
    return owners.get(cacheOwnerOf(caller))
  }

  #markUsed(session: string, owners: Map<string, Entries<T>>): void {
    if (session === this.#latestSession) return
    this.#sessions.delete(session)
    this.#sessions.set(session, owners)
    this.#latestSession = session
  }

  #sessionEntry(session: string, owner: string, key: string): CacheEntry<T> {
    const owners = this.#sessions.get(session) ?? new Map<string, Entries<T>>()
    this.#sessions.set(session, owners)
    this.#markUsed(session, owners)
    const entries: Entries<T> = owners.get(owner) ?? new Map()
    owners.set(owner, entries)
    return this.#entryIn(entries, key, { kind: 'session', session })
  }

  #ownerEntry(owner: string, key: string): CacheEntry<T> {
    const entries = entriesIn(this.#owners, owner, principalOf(owner))
    return entries.get(key) ?? this.#entryIn(entries, key, { kind: 'owner', owner })
  }

  #publicEntry(publicKey: string, key: string, principal: string | undefined): CacheEntry<T> {
    return this.#entryIn(entriesIn(this.#publics, publicKey, principal), key, { kind: 'all' })
  }

  #entryIn(entries: Entries<T>, key: string, scope: CacheScope): CacheEntry<T> {
    const entry = entries.get(key) ?? this.#create(key, scope)
    entries.set(key, entry)
    return entry
  }
}

const createScopeCache = <T>(): BoundedCache<Entries<T>> =>
  new BoundedCache<Entries<T>>(MOST_OWNERS, IDLE_MS, { onEvict: closeAll, mostPerGroup: MOST_PER_PRINCIPAL })

const entriesIn = <T>(cache: BoundedCache<Entries<T>>, name: string, group: string | undefined): Entries<T> => {
  const known = cache.get(name)
  if (known) return known
  const entries: Entries<T> = new Map()
  cache.set(name, entries, group)
  return entries
}

const hasValue = <T>(entries: Entries<T>): boolean => [...entries.values()].some(({ value }) => value !== undefined)

const closeAll = <T>(entries: Entries<T>): void => {
  for (const entry of entries.values()) entry.close()
}
