import { isDeepStrictEqual } from 'node:util'
import type { Caller } from '../../protocol/exchange.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Member } from '../member.ts'
import { CacheEntry, type FetchResult } from './cache-entry.ts'
import { type CacheScope, CacheScopes, cacheOwnerOf } from './cache-scopes.ts'
import { createCacheVersions } from './cache-versions.ts'
import { createSlowServers } from './deadline.ts'
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
import { createListInterner } from './interning.ts'
import { createListFaultReport, type OnListFault } from './list-faults.ts'
import { createMemberList, type MemberList } from './member-list.ts'
import type { ListKind } from './view.ts'

/** Something somebody may have been told is not true any more. */
export interface CacheChange {
  readonly kind: ListKind
  readonly server: string
  readonly scope: CacheScope
}

/** What a member of the workspace holds in a list, for one caller. */
export interface CachedList {
  readonly member: Member
  readonly entry: CacheEntry<MemberList>
}

interface Options {
  readonly members: readonly Member[]
  readonly times: CacheTimes
  readonly log: Log
  readonly onChange: (news: CacheChange) => void
  readonly onListFault?: OnListFault | undefined
}

/** The lists of every member, kept for those who may share them. */
export class Catalog {
  readonly times: CacheTimes
  readonly slowServers = createSlowServers()
  readonly #options: Options
  readonly #lists: CacheScopes<MemberList>
  readonly #introductions: CacheScopes<Discovery>
  readonly #intern = createListInterner()
  readonly #report: ReturnType<typeof createListFaultReport>
  readonly #stamps = createCacheVersions()

  constructor(options: Options) {
    this.#options = options
    this.times = options.times
    this.#report = createListFaultReport(options.log, options.onListFault)
    this.#lists = new CacheScopes((key, concern) => this.#create(key, concern), { bytesOf: ({ bytes }) => bytes })
    this.#introductions = new CacheScopes(
      () => new CacheEntry({ times: this.times, isEqual: () => false, onChange: () => this.#introductions.trim() }),
      { bytesOf: ({ result }) => result.size },
    )
  }

  /** Another number whenever something held for this caller has changed. */
  versionOf(caller: Caller): number {
    return this.#stamps.of(caller)
  }

  /** Begins with what the catalogue before it knows of the same servers, shown the same way. */
  copyFrom(before: Catalog): void {
    const same = this.#options.members.filter(({ server, native: own, overlays }) =>
      before.#options.members.some(
        other => other.server === server && other.native === own && isDeepStrictEqual(other.overlays, overlays),
      ),
    )
    const servers = new Set(same.map(({ server }) => server))
    this.#lists.copyFrom(before.#lists, key => servers.has(key.split('\n')[0] ?? ''))
    this.#introductions.copyFrom(before.#introductions, key => servers.has(key))
  }

  cachedList(member: Member, caller: Caller, kind: ListKind): CachedList {
    return { member, entry: this.#lists.find(caller, keyOf(member, kind)) }
  }

  /** The same for several members. */
  cachedLists(members: readonly Member[], caller: Caller, kind: ListKind): CachedList[] {
    const find = this.#lists.finder(caller)
    return members.map(member => ({ member, entry: find(keyOf(member, kind)) }))
  }

  /** The lists that servers showed the same principal with other capabilities. */
  siblingLists(caller: Caller, kind: ListKind): (member: Member) => MemberList | undefined {
    const find = this.#lists.siblingFinder(caller)
    return member => find(keyOf(member, kind))
  }

  introduction(member: Member, caller: Caller): CacheEntry<Discovery> {
    return this.#introductions.find(caller, member.server)
  }

  /** Whether a session has lists that nobody shares. */
  hasSessionLists(caller: Caller): boolean {
    return this.#lists.hasSessionEntries(caller)
  }

  /** Asks for a list in the name of a caller, unless that is under way; never rejects. */
  refresh({ member, entry: holding }: CachedList, caller: Caller, kind: ListKind): Promise<void> {
    const key = keyOf(member, kind)
    const isOwn = this.#lists.isSessionEntry(caller, key)
    return holding.refresh(async () => {
      const fetched = this.#listOf(member, kind, await this.#fetch(member, caller, kind, isOwn))
      if (isOwn) return fetched
      this.#lists.publish(caller, key, fetched)
      // What was public and is no more must reach nobody but him who asked.
      if (!fetched.isPublic && holding !== this.#lists.ownerEntry(caller, key))
        this.#lists.ownerEntry(caller, key).store(fetched)
      return fetched
    })
  }

  discover(member: Member, caller: Caller): Promise<void> {
    const lister = fetchingCaller(caller, false)
    return this.introduction(member, caller).refresh(() => this.#visit(member, caller, lister, fetchDiscovery))
  }

  /** A member said that a list has changed; `isOwn` where it said so to one session of its own. */
  markStale(member: Member, caller: Caller, kind: ListKind, isOwn: boolean): CachedList {
    const key = keyOf(member, kind)
    this.#changed(caller)
    this.#lists.find(caller, key).markStale()
    this.#lists.ownerEntry(caller, key).markStale()
    if (!isOwn || caller.session === undefined) return this.cachedList(member, caller, kind)
    const holding = this.#lists.apart(caller, caller.session, key)
    holding.listenerCount ||= 1 // by that session
    holding.markStale()
    return { member, entry: holding }
  }

  /** Counts those who would hear of a change. */
  countListener(member: Member, caller: Caller, kind: ListKind, by: 1 | -1): void {
    const key = keyOf(member, kind)
    this.#changed(caller)
    for (const holding of new Set([this.#lists.ownerEntry(caller, key), this.#lists.find(caller, key)])) {
      holding.listenerCount = Math.max(0, holding.listenerCount + by) // it may have been forgotten and made anew meanwhile
      holding.hasLostListeners ||= by < 0 && holding.listenerCount === 0
    }
  }

  /** A member was away: everything known of it is in doubt. */
  markRecovered(server: string, kinds: readonly ListKind[]): void {
    this.#stamps.bump({ kind: 'everybody' })
    for (const kind of kinds) for (const holding of this.#lists.entriesOf(`${server}\n${kind}`)) holding.resetBackoff()
    for (const holding of this.#introductions.entriesOf(server)) holding.resetBackoff()
  }

  /** A member is known to be down: what it listed is kept for a while. */
  markDown(server: string, kinds: readonly ListKind[], reason: string): void {
    for (const kind of kinds)
      for (const holding of this.#lists.entriesOf(`${server}\n${kind}`)) if (!holding.pendingFetch) holding.fail(reason)
  }

  endSession(session: string): void {
    this.#lists.endSession(session)
  }

  close(): void {
    this.#lists.clear()
    this.#introductions.clear()
  }

  #changed(caller: Caller): void {
    this.#stamps.bump({ kind: 'owner', owner: cacheOwnerOf(caller) })
    if (caller.session !== undefined) this.#stamps.bump({ kind: 'session', session: caller.session })
  }

  #create(key: string, concern: CacheScope): CacheEntry<MemberList> {
    const [server = '', kind] = key.split('\n') as [string, ListKind]
    return new CacheEntry<MemberList>({
      times: this.times,
      isEqual: (a, b) => a === b,
      onChange: isNews => {
        this.#stamps.bump(concern)
        this.#lists.trim()
        if (isNews) this.#options.onChange({ kind, server, scope: concern })
      },
    })
  }

  async #fetch(member: Member, caller: Caller, kind: ListKind, isOwn: boolean): Promise<FetchResult<FetchedList>> {
    const lister = fetchingCaller(caller, isOwn)
    const discovery = this.introduction(member, caller)
    return this.#visit(member, caller, lister, async (peer, query) => {
      // On the same peer: another one might be another process.
      if (discovery.freshUntil < Date.now()) await discovery.refresh(() => fetchDiscovery(peer, query))
      return fetchList(member, kind, peer, query, discovery.value)
    })
  }

  #visit<T>(member: Member, caller: Caller, lister: Caller, work: PeerWork<T>): Promise<T> {
    return withPeer(member, lister, this.times.fetchTimeoutMs, work).then(result => {
      this.slowServers.answered(member, caller)
      return result
    })
  }

  #listOf(member: Member, kind: ListKind, { value, ...hints }: FetchResult<FetchedList>): FetchResult<MemberList> {
    const { revision, reading } = value
    this.#report(member.server, kind, reading)
    return { ...hints, value: this.#intern(keyOf(member, kind), createMemberList(kind, revision, reading)) }
  }
}

// No server has a line break in its name.
const keyOf = ({ server }: Member, kind: ListKind): string => `${server}\n${kind}`
