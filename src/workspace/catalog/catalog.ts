import { isDeepStrictEqual } from 'node:util'
import type { Caller, Peer } from '../../protocol/exchange.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { within } from '../../std/time.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Member } from '../member.ts'
import { CacheEntry, type FetchResult } from './cache-entry.ts'
import { type CacheScope, cacheOwnerOf, createCacheVersions } from './cache-owner.ts'
import { CacheScopes } from './cache-scopes.ts'
import {
  type Discovery,
  type FetchedList,
  fetchDiscovery,
  fetchingCaller,
  fetchList,
  type PeerWork,
  withPeer,
} from './fetch.ts'
import type { CacheTimes } from './freshness.ts'
import { ALL_LIST_KINDS, type ListKind } from './list-kinds.ts'
import { createListInterner, createMemberList, type MemberList } from './member-list.ts'
import { createListFaultReport, type OnListFault } from './read-list.ts'

const MOST_SLOW = 1000
const MOST_SLOW_EACH = 250 // of one principal
const SLOW_MS = 60_000

/** A cached list that clients have seen is not up to date any more. */
export interface CacheChange {
  readonly kind: ListKind
  readonly server: string
  readonly scope: CacheScope
}

/** A cached value of one member, in the scope of one caller. */
export interface CachedOf<T> {
  readonly member: Member
  readonly entry: CacheEntry<T>
}

export type CachedList = CachedOf<MemberList>

type AwaitedEntry = Pick<CacheEntry<unknown>, 'value' | 'pendingFetch' | 'failure'>

interface CatalogOptions {
  readonly members: readonly Member[]
  readonly times: CacheTimes
  readonly log: Log
  readonly onChange: (change: CacheChange) => void
  readonly onListFault?: OnListFault | undefined
}

/** The cached lists and discovery results of every member of a workspace. */
export class Catalog {
  readonly times: CacheTimes
  readonly #options: CatalogOptions
  readonly #lists: CacheScopes<MemberList>
  readonly #discoveries: CacheScopes<Discovery>
  readonly #intern = createListInterner()
  readonly #reportFaults: ReturnType<typeof createListFaultReport>
  readonly #versions = createCacheVersions()
  readonly #slow = new BoundedCache<true>(MOST_SLOW, SLOW_MS, { mostPerGroup: MOST_SLOW_EACH })
  readonly #pinged = new WeakSet<Peer>()

  constructor(options: CatalogOptions) {
    this.#options = options
    this.times = options.times
    this.#reportFaults = createListFaultReport(options.log, options.onListFault)
    this.#lists = new CacheScopes((key, scope) => this.#createEntry(key, scope), { bytesOf: ({ bytes }) => bytes })
    this.#discoveries = new CacheScopes(
      () => new CacheEntry({ times: this.times, isEqual: () => false, onChange: () => this.#discoveries.trim() }),
      { bytesOf: ({ result }) => result.size },
    )
  }

  /** A number that grows whenever a list that this caller sees has changed. */
  versionOf(caller: Caller): number {
    return this.#versions.of(caller)
  }

  /** Starts with what the previous catalog has cached of the same servers with the same overlays. */
  copyFrom(previous: Catalog): void {
    const same = this.#options.members.filter(({ server, native, overlays }) =>
      previous.#options.members.some(
        other => other.server === server && other.native === native && isDeepStrictEqual(other.overlays, overlays),
      ),
    )
    const servers = new Set(same.map(({ server }) => server))
    this.#lists.copyFrom(previous.#lists, key => servers.has(key.split('\n')[0] ?? ''))
    this.#discoveries.copyFrom(previous.#discoveries, key => servers.has(key))
  }

  cachedList(member: Member, caller: Caller, kind: ListKind): CachedList {
    return { member, entry: this.#lists.find(caller, keyOf(member, kind)) }
  }

  cachedLists(members: readonly Member[], caller: Caller, kind: ListKind): CachedList[] {
    const find = this.#lists.finder(caller)
    return members.map(member => ({ member, entry: find(keyOf(member, kind)) }))
  }

  /** Finds the lists that the same principal was sent with other capabilities. */
  siblingLists(caller: Caller, kind: ListKind): (member: Member) => MemberList | undefined {
    const find = this.#lists.siblingFinder(caller)
    return member => find(keyOf(member, kind))
  }

  discovery(member: Member, caller: Caller): CacheEntry<Discovery> {
    return this.#discoveries.find(caller, member.server)
  }

  /** Whether the caller's session has lists of its own. */
  hasSessionLists(caller: Caller): boolean {
    return this.#lists.hasSessionEntries(caller)
  }

  /** Fetches a list in the name of a caller, unless a fetch is pending; never rejects. */
  refresh({ member, entry }: CachedList, caller: Caller, kind: ListKind): Promise<void> {
    const key = keyOf(member, kind)
    const isForSession = this.#lists.isSessionEntry(caller, key)
    return entry.refresh(async () => {
      const fetched = this.#listOf(member, kind, await this.#fetch(member, caller, kind, isForSession))
      if (isForSession) return fetched
      this.#lists.publish(caller, key, fetched)
      // A list that is no longer public must reach only the caller it was fetched for.
      const ownerEntry = fetched.isPublic ? entry : this.#lists.ownerEntry(caller, key)
      if (entry !== ownerEntry) ownerEntry.store(fetched)
      return fetched
    })
  }

  /** Fetches the discovery result of a member, unless a fetch is pending; never rejects. */
  discover(member: Member, caller: Caller): Promise<void> {
    const fetcher = fetchingCaller(caller, false)
    return this.discovery(member, caller).refresh(() => this.#withPeer(member, caller, fetcher, fetchDiscovery))
  }

  /**
   * Waits for the first fetch of members that were not slow lately; a member that exceeds the timeout counts as slow for
   * a minute. Undefined: there is nothing to wait for.
   */
  waitForFirst(
    cached: readonly { readonly member: Member; readonly entry: AwaitedEntry }[],
    caller: Caller,
  ): Promise<void> | undefined {
    const awaited = cached.filter(
      ({ member, entry }) =>
        !entry.value && entry.pendingFetch && entry.failure === undefined && !this.isSlow(member, caller),
    )
    if (awaited.length === 0) return undefined
    return this.settle(awaited.map(({ entry }) => entry.pendingFetch)).then(() => {
      for (const { member, entry } of awaited)
        if (!entry.value && entry.pendingFetch) this.#slow.set(slowKey(member, caller), true, caller.principal ?? '')
    })
  }

  /** Resolves when all promises have settled, at the latest after `listTimeoutMs`. */
  settle(work: readonly (Promise<unknown> | undefined)[]): Promise<void> {
    const settled = Promise.allSettled(work).then(() => {})
    return work.length === 0 ? settled : within(this.times.listTimeoutMs, settled, () => {})
  }

  /** Whether a client has lately waited in vain for the first answer of this member. */
  isSlow(member: Member, caller: Caller): boolean {
    return this.#slow.get(slowKey(member, caller)) === true
  }

  /** The member announced a change of a list; `isForSession` if it announced it to the caller's session only. */
  markStale(member: Member, caller: Caller, kind: ListKind, isForSession: boolean): CachedList {
    const key = keyOf(member, kind)
    this.#bumpVersion(caller)
    this.#lists.find(caller, key).markStale()
    this.#lists.ownerEntry(caller, key).markStale()
    if (!isForSession || caller.session === undefined) return this.cachedList(member, caller, kind)
    const entry = this.#lists.forkForSession(caller, caller.session, key)
    if (entry.listenerCount === 0) entry.countListener(1) // the session itself
    entry.markStale()
    return { member, entry }
  }

  /** Counts a listener for the change notifications of a list. */
  countListener(member: Member, caller: Caller, kind: ListKind, by: 1 | -1): void {
    const key = keyOf(member, kind)
    this.#bumpVersion(caller)
    const entries = new Set([this.#lists.ownerEntry(caller, key), this.#lists.find(caller, key)])
    for (const entry of entries) entry.countListener(by)
  }

  /** The server was down: every cached value of it may be out of date. */
  markRecovered(server: string): void {
    this.#versions.bump({ kind: 'all' })
    for (const kind of ALL_LIST_KINDS)
      for (const entry of this.#lists.entriesOf(`${server}\n${kind}`)) entry.resetBackoff()
    for (const entry of this.#discoveries.entriesOf(server)) entry.resetBackoff()
  }

  /** The server is down: its lists are served for `staleIfErrorMs` more. */
  markDown(server: string, reason: string): void {
    for (const kind of ALL_LIST_KINDS)
      for (const entry of this.#lists.entriesOf(`${server}\n${kind}`)) if (!entry.pendingFetch) entry.fail(reason)
  }

  endSession(session: string): void {
    this.#lists.endSession(session)
  }

  close(): void {
    this.#lists.clear()
    this.#discoveries.clear()
  }

  #bumpVersion(caller: Caller): void {
    this.#versions.bump({ kind: 'owner', owner: cacheOwnerOf(caller) })
    if (caller.session !== undefined) this.#versions.bump({ kind: 'session', session: caller.session })
  }

  #createEntry(key: string, scope: CacheScope): CacheEntry<MemberList> {
    const [server = '', kind] = key.split('\n') as [string, ListKind]
    return new CacheEntry<MemberList>({
      times: this.times,
      isEqual: (a, b) => a === b,
      onChange: notify => {
        this.#versions.bump(scope)
        this.#lists.trim()
        if (notify) this.#options.onChange({ kind, server, scope })
      },
    })
  }

  async #fetch(
    member: Member,
    caller: Caller,
    kind: ListKind,
    isForSession: boolean,
  ): Promise<FetchResult<FetchedList>> {
    const discovery = this.discovery(member, caller)
    return this.#withPeer(member, caller, fetchingCaller(caller, isForSession), async (peer, query) => {
      // On the same peer: another one might be another process.
      if (discovery.freshUntil < Date.now()) await discovery.refresh(() => fetchDiscovery(peer, query))
      return fetchList({ member, kind, peer, query, discovery: discovery.value, pinged: this.#pinged })
    })
  }

  #withPeer<T>(member: Member, caller: Caller, fetcher: Caller, work: PeerWork<T>): Promise<T> {
    return withPeer(member, fetcher, this.times.fetchTimeoutMs, work).then(result => {
      this.#slow.delete(slowKey(member, caller))
      return result
    })
  }

  #listOf(
    member: Member,
    kind: ListKind,
    { value: { revision, reading }, ...hints }: FetchResult<FetchedList>,
  ): FetchResult<MemberList> {
    this.#reportFaults(member.server, kind, reading)
    return { ...hints, value: this.#intern(keyOf(member, kind), createMemberList(kind, revision, reading)) }
  }
}

// No server has a line break in its name.
const keyOf = ({ server }: Member, kind: ListKind): string => `${server}\n${kind}`

const slowKey = ({ server }: Member, caller: Caller): string => `${server}\n${cacheOwnerOf(caller)}`
