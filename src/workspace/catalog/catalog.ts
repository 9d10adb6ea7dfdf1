import { isDeepStrictEqual } from 'node:util'
import type { Caller, Peer } from '../../protocol/exchange.ts'
import type { ChangingList } from '../../protocol/notifications.ts'
import { BoundedCache } from '../../std/bounded-cache.ts'
import { within } from '../../std/time.ts'
import type { Log } from '../../telemetry/log.ts'
import type { Member } from '../member.ts'
import { CacheEntry, type FetchResult, type Seed } from './cache-entry.ts'
import { type CacheScope, cacheOwnerOf, createCacheVersions, principalOf } from './cache-owner.ts'
import { CacheScopes } from './cache-scopes.ts'
import {
  type Discovery,
  type FetchedList,
  fetchDiscovery,
  fetchingCaller,
  fetchList,
  type PeerWork,
  showOf,
  withPeer,
} from './fetch.ts'
import type { CacheTimes } from './freshness.ts'
import { ALL_LIST_KINDS, LIST_KINDS, type ListKind } from './list-kinds.ts'
import { createListInterner, createMemberList, type MemberList } from './member-list.ts'
import { createListFaultReport, type OnListFault } from './read-list.ts'
import { createSeeds, type Seeds } from './seeds.ts'

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

/** The servers whose first list is awaited, of all that were missing. */
export interface WaitProgress {
  readonly waiting: readonly string[]
  readonly total: number
}

export type OnWait = (progress: WaitProgress) => void

type AwaitedEntry = Pick<
  CacheEntry<unknown>,
  'value' | 'pendingFetch' | 'failure' | 'isProvisional' | 'isOutdated' | 'whenFilled'
>

interface CatalogOptions {
  readonly members: readonly Member[]
  readonly times: CacheTimes
  readonly log: Log
  readonly onChange: (change: CacheChange) => void
  readonly onListFault?: OnListFault | undefined
  /** Tells other replicas that a list of a server has changed. */
  readonly announceChange?: ((server: string, list: ChangingList) => void) | undefined
}

/** The cached lists and discovery results of every member of a workspace. */
export class Catalog {
  readonly times: CacheTimes
  readonly #options: CatalogOptions
  readonly #lists: CacheScopes<MemberList>
  readonly #discoveries: CacheScopes<Discovery>
  readonly #intern = createListInterner()
  readonly #seeds: Seeds
  readonly #stopListening: readonly ((() => void) | undefined)[]
  readonly #reportFaults: ReturnType<typeof createListFaultReport>
  readonly #versions = createCacheVersions()
  readonly #slow = new BoundedCache<true>(MOST_SLOW, SLOW_MS, { mostPerGroup: MOST_SLOW_EACH })
  readonly #pinged = new WeakSet<Peer>()
  readonly #later = new Set<NodeJS.Timeout>()

  constructor(options: CatalogOptions) {
    this.#options = options
    this.times = options.times
    this.#reportFaults = createListFaultReport(options.log, options.onListFault)
    this.#seeds = createSeeds(options.members, (server, kind, list) => this.#intern(keyOf({ server }, kind), list))
    this.#lists = new CacheScopes((key, scope) => this.#createEntry(key, scope), { bytesOf: ({ bytes }) => bytes })
    this.#discoveries = new CacheScopes((server, scope) => this.#createDiscoveryEntry(server, scope), {
      bytesOf: ({ result }) => result.size,
    })
    this.#stopListening = options.members.map(member => member.learnt?.onLearnt(() => this.#applyLearnt(member)))
  }

  /** A number that grows whenever a list that this caller sees has changed. */
  versionOf(caller: Caller): number {
    return this.#versions.of(caller)
  }

  /** Starts with what the previous catalog has cached of the same servers that are shown in the same way. */
  copyFrom(previous: Catalog): void {
    const same = this.#options.members.filter(({ server, native, overlays, trim }) =>
      previous.#options.members.some(
        other =>
          other.server === server &&
          other.native === native &&
          isDeepStrictEqual([other.overlays, other.trim], [overlays, trim]),
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
      if (isForSession) {
        this.#replaceProvisional(this.#lists.ownerEntry(caller, key), fetched)
        return fetched
      }
      this.#lists.publish(caller, key, fetched)
      // A list that is no longer public must reach only the caller it was fetched for.
      const ownerEntry = fetched.isPublic ? entry : this.#lists.ownerEntry(caller, key)
      if (entry !== ownerEntry) ownerEntry.store(fetched)
      const principal = principalOf(cacheOwnerOf(caller))
      const { server } = member
      this.#lists.seedEmpty(key, owner =>
        principalOf(owner) === principal ? this.#seeds.list(server, kind, owner, fetched.value) : undefined,
      )
      return fetched
    })
  }

  /** The list of one session is closer to what the owner's other sessions get than one that was fetched for another caller. */
  #replaceProvisional(entry: CacheEntry<MemberList>, fetched: FetchResult<MemberList>): void {
    if (!entry.isProvisional) return
    entry.store(fetched)
    entry.markStale()
  }

  /** Fetches the discovery result of a member, unless a fetch is pending; never rejects. */
  discover(member: Member, caller: Caller): Promise<void> {
    const fetcher = fetchingCaller(caller, false)
    return this.discovery(member, caller).refresh(() => this.#withPeer(member, caller, fetcher, fetchDiscovery))
  }

  /**
   * Fetches at once, or after the answer if there is one: to start a process takes the time of all other requests. No
   * process is started for a list that is known, unless only its caller can tell what clients with its capabilities get.
   */
  fetchBehind<T>({ member, entry }: CachedOf<T>, caller: Caller, fetch: () => Promise<void>): void {
    if (!member.isProcess || entry.value === undefined || entry.isOutdated) return void fetch()
    const timer = setTimeout(() => {
      this.#later.delete(timer)
      if (!entry.isDue(Date.now()) || !member.isUp()) return
      const byClient = member.learnt?.byClient
      if (!wouldStart(member, caller) || (entry.isProvisional && !byClient)) void fetch()
      else if (entry.isProvisional) byClient?.learn(caller)
    }, this.times.behindMs).unref()
    this.#later.add(timer)
  }

  /**
   * Waits for the first value of members that were not slow lately; a member that exceeds the timeout counts as slow for
   * a minute. Where a value from elsewhere is known, the caller's own has only a moment to replace it; one that is known to
   * be outdated is replaced first. Undefined: there is nothing to wait for.
   */
  waitForFirst(
    cached: readonly { readonly member: Member; readonly entry: AwaitedEntry }[],
    caller: Caller,
    onWait: OnWait = () => {},
  ): Promise<void> | undefined {
    const awaited = cached.filter(
      ({ member, entry }) =>
        !entry.value && entry.pendingFetch && entry.failure === undefined && !this.isSlow(member, caller),
    )
    const replaced = cached.flatMap(({ entry }) => (entry.isProvisional && entry.pendingFetch) || [])
    const outdated = cached.flatMap(({ member, entry }) =>
      entry.isOutdated && entry.pendingFetch && !this.isSlow(member, caller) ? entry.pendingFetch : [],
    )
    const replacing =
      outdated.length > 0
        ? this.settle([...outdated, ...replaced])
        : replaced.length > 0
          ? this.#settleWithin(this.times.ownListMs, replaced)
          : undefined
    if (awaited.length === 0) return replacing
    const waiting = new Set(awaited.map(({ member }) => member.server))
    const report = (): void => onWait({ waiting: [...waiting], total: awaited.length })
    report()
    const filled = awaited.map(({ member, entry }) =>
      entry.whenFilled().then(() => {
        if (waiting.delete(member.server) && waiting.size > 0) report()
      }),
    )
    return this.#settleWithin(this.times.listWaitMs, [...filled, ...outdated]).then(() => {
      waiting.clear() // those that come later are not reported
      for (const { member, entry } of awaited)
        if (!entry.value && entry.pendingFetch) this.#slow.set(slowKey(member, caller), true, caller.principal ?? '')
    })
  }

  /** Resolves when all promises have settled, at the latest after `listTimeoutMs`. */
  settle(work: readonly (Promise<unknown> | undefined)[]): Promise<void> {
    return this.#settleWithin(this.times.listTimeoutMs, work)
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

  /** Another replica was told that a list has changed: its clients may ask here next, and must not get the old one. */
  markOutdated(server: string, list: ChangingList): void {
    this.#versions.bump({ kind: 'all' })
    for (const kind of ALL_LIST_KINDS)
      if (LIST_KINDS[kind].capability === list)
        for (const entry of this.#lists.entriesOf(`${server}\n${kind}`)) entry.markOutdated()
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
    const member = this.#options.members.find(each => each.server === server)
    const isLearnt = member?.learnt?.byClient !== undefined // again: no process is started for each caller
    const mark = (entry: Pick<CacheEntry<unknown>, 'resetBackoff' | 'markProvisional'>): void => {
      entry.resetBackoff()
      if (isLearnt) entry.markProvisional()
    }
    for (const kind of ALL_LIST_KINDS) for (const entry of this.#lists.entriesOf(`${server}\n${kind}`)) mark(entry)
    for (const entry of this.#discoveries.entriesOf(server)) mark(entry)
    if (member && isLearnt) this.#applyLearnt(member)
  }

  /** The login of a principal at a server came or went: what it was sent before is not shown any more. Undefined: of all. */
  forgetLogin(server: string, principal: string | undefined): void {
    this.#versions.bump({ kind: 'all' })
    const owner = principal === undefined ? undefined : `=${principal}`
    for (const kind of ALL_LIST_KINDS)
      for (const entry of this.#lists.privateEntriesOf(`${server}\n${kind}`, owner)) entry.clear()
    for (const entry of this.#discoveries.privateEntriesOf(server, owner)) entry.clear()
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
    for (const stop of this.#stopListening) stop?.()
    for (const timer of this.#later) clearTimeout(timer)
    this.#lists.clear()
    this.#discoveries.clear()
  }

  #settleWithin(ms: number, work: readonly (Promise<unknown> | undefined)[]): Promise<void> {
    const settled = Promise.allSettled(work).then(() => {})
    return work.length === 0 ? settled : within(ms, settled, () => {})
  }

  /** The gateway has learnt a server: callers without lists of their own get what it has learnt. */
  #applyLearnt(member: Member): void {
    const { server } = member
    for (const kind of ALL_LIST_KINDS)
      this.#lists.seedProvisional(keyOf(member, kind), owner => this.#seeds.list(server, kind, owner, undefined))
    this.#discoveries.seedProvisional(server, owner => this.#seeds.discovery(server, owner, undefined))
  }

  #bumpVersion(caller: Caller): void {
    this.#versions.bump({ kind: 'owner', owner: cacheOwnerOf(caller) })
    if (caller.session !== undefined) this.#versions.bump({ kind: 'session', session: caller.session })
  }

  #createEntry(key: string, scope: CacheScope): CacheEntry<MemberList> {
    const [server, kind] = splitKey(key)
    return new CacheEntry<MemberList>({
      times: this.times,
      isEqual: (a, b) => a === b,
      seed: scope.kind === 'owner' ? this.#listSeed(key, scope.owner) : undefined,
      onChange: notify => {
        this.#versions.bump(scope)
        this.#lists.trim()
        if (notify) this.#options.onChange({ kind, server, scope })
      },
      onDifferent:
        scope.kind === 'session'
          ? undefined
          : () => this.#options.announceChange?.(server, LIST_KINDS[kind].capability),
    })
  }

  #listSeed(key: string, owner: string): Seed<MemberList> | undefined {
    const [server, kind] = splitKey(key)
    return this.#seeds.list(server, kind, owner, this.#lists.siblingValue(owner, key))
  }

  #createDiscoveryEntry(server: string, scope: CacheScope): CacheEntry<Discovery> {
    const sibling = scope.kind === 'owner' ? this.#discoveries.siblingValue(scope.owner, server) : undefined
    return new CacheEntry<Discovery>({
      times: this.times,
      isEqual: () => false,
      seed: scope.kind === 'owner' ? this.#seeds.discovery(server, scope.owner, sibling) : undefined,
      onChange: () => this.#discoveries.trim(),
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
      const show = showOf(member, kind)
      return fetchList({ show, kind, peer, query, discovery: discovery.value, pinged: this.#pinged })
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

/** Whether a request of this caller would start a process. */
export const wouldStart = ({ isProcess, runsFor }: Member, caller: Caller): boolean =>
  isProcess && runsFor?.(caller) === false

// No server has a line break in its name.
const keyOf = ({ server }: Pick<Member, 'server'>, kind: ListKind): string => `${server}\n${kind}`

const splitKey = (key: string): [server: string, kind: ListKind] => key.split('\n') as [string, ListKind]

const slowKey = ({ server }: Member, caller: Caller): string => `${server}\n${cacheOwnerOf(caller)}`
