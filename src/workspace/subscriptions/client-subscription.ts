import { deliver } from '../../protocol/deliver.ts'
import type { Exchange, Frame } from '../../protocol/exchange.ts'
import {
  CHANGING_LISTS,
  type ChangingList,
  isPartOf,
  LIST_CHANGES,
  missedNotices,
  NOTIFICATIONS,
} from '../../protocol/notifications.ts'
import { isModern } from '../../protocol/revisions.ts'
import { Json } from '../../wire/json/json.ts'
import type { ShownLists } from '../budget/shown-lists.ts'
import type { CacheEntry } from '../catalog/cache-entry.ts'
import { cacheOwnerOf } from '../catalog/cache-owner.ts'
import { type CacheChange, type Catalog, wouldStart } from '../catalog/catalog.ts'
import type { ListKind } from '../catalog/list-kinds.ts'
import type { MemberList } from '../catalog/member-list.ts'
import type { MergedLists } from '../catalog/merged-lists.ts'
import type { Member } from '../member.ts'
import { uriAliasesOf, withServerName } from '../routing/member-frames.ts'
import { rewriteUris } from '../routing/uris.ts'
import { ListChangedNotifier } from './list-changed.ts'
import type { Refetcher } from './refetch.ts'
import { UpstreamSubscription } from './upstream-subscription.ts'

const RECOVERY_MS = 5000 // a recovery found twice within this time is notified once

/** The lists that each `list_changed` notification is about. */
const LISTS: Readonly<Record<ChangingList, readonly ListKind[]>> = {
  tools: ['tools'],
  prompts: ['prompts'],
  resources: ['resources', 'templates'],
}

const keyOf = ({ server }: Member, list: ChangingList): string => `${server} ${list}`

const listsIn = (notifications: Json): ChangingList[] =>
  CHANGING_LISTS.filter(list => notifications.get(LIST_CHANGES[list].flag)?.asBoolean() === true)

/** What subscriptions need of their workspace. */
export interface SubscriptionContext {
  readonly catalog: Catalog
  readonly lists: MergedLists
  readonly shown: ShownLists
  readonly refetcher: Refetcher
  readonly isAggregate: boolean
  /** Tells other replicas that a server has announced a change. */
  readonly announceChange?: ((server: string, list: ChangingList) => void) | undefined
}

/** The URIs a client subscribes to: by member, the member's URI and the client's. */
export type WatchedUris = ReadonlyMap<Member, ReadonlyMap<string, string>>

/** One `subscriptions/listen` of a client, or of a legacy session, with a subscription to every member. */
export class ClientSubscription {
  readonly #exchange: Exchange
  readonly #context: SubscriptionContext
  readonly #wanted: ReadonlySet<ChangingList>
  readonly #watched: WatchedUris
  readonly #accepted = new Set<string>() // URIs in the acknowledgement
  readonly #counted = new Map<UpstreamSubscription, readonly ChangingList[]>() // as listeners of these lists
  readonly #unwatched = new Set<string>() // members' lists that may have changed while no listener was there
  readonly #recoveredAt = new Map<string, number>() // by member and list
  readonly #notifier: ListChangedNotifier
  readonly #upstreams: readonly UpstreamSubscription[]
  #isAcknowledged = false
  #isOver = false

  constructor(exchange: Exchange, members: readonly Member[], watched: WatchedUris, context: SubscriptionContext) {
    this.#exchange = exchange
    this.#context = context
    this.#watched = watched
    const notifications = exchange.params.get('notifications') ?? Json.empty
    this.#wanted = new Set(listsIn(notifications))
    this.#upstreams = members.flatMap(member => this.#subscribe(member, notifications) ?? [])
    this.#notifier = new ListChangedNotifier({
      sink: exchange.sink,
      wanted: this.#wanted,
      coalesceMs: context.catalog.times.coalesceMs,
      hashOf: list => LISTS[list].map(kind => context.shown.cachedHash(exchange.caller, kind)).join(),
    })
  }

  get principal(): string | undefined {
    return this.#exchange.caller.principal
  }

  /** Subscribes to all members, and acknowledges as soon as they have answered or the timeout is over. */
  async begin(): Promise<void> {
    for (const upstream of this.#upstreams) upstream.start()
    const { catalog } = this.#context
    const awaited = this.#upstreams.filter(({ member }) => !catalog.isSlow(member, this.#exchange.caller))
    await catalog.settle(awaited.map(upstream => upstream.settled))
    if (this.#isOver) return
    this.#isAcknowledged = true
    const uris = this.#exchange.params.at('notifications', 'resourceSubscriptions')
    const flags = [...this.#wanted].map(list => [LIST_CHANGES[list].flag, true] as const)
    const notifications = { ...Object.fromEntries(flags), ...(uris && { resourceSubscriptions: [...this.#accepted] }) }
    const params = Json.of({ notifications })
    void deliver(this.#exchange.sink, { kind: 'notice', method: NOTIFICATIONS.acknowledged, params })
  }

  /** A cached list has changed. */
  onCacheChange({ kind, scope }: CacheChange): void {
    const { caller } = this.#exchange
    if (scope.kind === 'owner' && scope.owner !== cacheOwnerOf(caller)) return
    if (scope.kind === 'session' && scope.session !== caller.session) return
    for (const list of CHANGING_LISTS) if (LISTS[list].includes(kind)) this.#notifier.schedule(list, false)
  }

  /** A server is back. Not every transport reports that its subscription works again, so its lists are fetched here. */
  onRecovered(server: string): void {
    for (const upstream of this.#upstreams) {
      const { member } = upstream
      if (member.server !== server) continue
      upstream.reconnect()
      for (const list of this.#wanted)
        if (this.#entries(member, list).some(wasSeen)) this.#recover(member, list)
        else this.#refetch(member, list)
    }
  }

  /** A list of a server has changed, and the server has not announced it. */
  onListChanged(server: string, list: ChangingList): void {
    if (!this.#wanted.has(list)) return
    for (const { member } of this.#upstreams) if (member.server === server) this.#onListChanged(member, list)
  }

  /** Ends the subscription; `hasLeft` if the client has ended it, and expects no result. */
  end(hasLeft: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#notifier.end()
    for (const upstream of this.#upstreams) upstream.end(this.#exchange.signal.reason ?? { kind: 'closing' })
    if (!hasLeft) void deliver(this.#exchange.sink, { kind: 'result', result: Json.of({ resultType: 'complete' }) })
  }

  #entries(member: Member, list: ChangingList): CacheEntry<MemberList>[] {
    const { caller } = this.#exchange
    return LISTS[list].map(kind => this.#context.catalog.cachedList(member, caller, kind).entry)
  }

  #subscribe(member: Member, notifications: Json): UpstreamSubscription | undefined {
    const uris = this.#watched.get(member)
    if (this.#wanted.size === 0 && !uris) return undefined
    const wanted = uris
      ? notifications.with('resourceSubscriptions', [...uris.keys()])
      : notifications.without('resourceSubscriptions')
    const exchange = { ...this.#exchange, params: this.#exchange.params.with('notifications', wanted) }
    const upstream: UpstreamSubscription = new UpstreamSubscription(member, exchange, {
      onListening: (acknowledged, wasLost) => this.#onListening(upstream, acknowledged, wasLost),
      onLost: () => this.#countListeners(upstream, []),
      onFrame: frame => this.#onFrame(member, frame),
    })
    return upstream
  }

  #onListening(upstream: UpstreamSubscription, params: Json, wasLost: boolean): void {
    const { member } = upstream
    const acknowledged = params.get('notifications') ?? Json.empty
    const lists = listsIn(acknowledged)
    const isNew = !this.#counted.has(upstream)
    // A process that does not run has changed no list; some announce all their lists when they start.
    if (isNew && !wouldStart(member, this.#exchange.caller))
      for (const list of lists)
        if (this.#entries(member, list).some(isUnwatched)) this.#unwatched.add(keyOf(member, list))
    this.#countListeners(upstream, lists)
    for (const uri of acknowledged.get('resourceSubscriptions')?.elements() ?? []) {
      const asked = this.#watched.get(member)?.get(uri.asString() ?? '')
      if (asked !== undefined && !this.#isAcknowledged) this.#accepted.add(asked)
    }
    if (wasLost) this.#announceMissed(member, params)
    else if (isNew) this.#refetchUnwatched(member, lists)
  }

  /** Lists are fetched and compared with those that are known; one that is not known may have changed. */
  #announceMissed(member: Member, acknowledged: Json): void {
    for (const list of this.#wanted)
      if (this.#entries(member, list).some(({ value }) => value === undefined)) this.#unwatched.add(keyOf(member, list))
    for (const notice of missedNotices(acknowledged)) void this.#onFrame(member, notice)
  }

  #refetchUnwatched(member: Member, lists: readonly ChangingList[]): void {
    for (const list of lists)
      if (this.#entries(member, list).some(({ hasLostListeners }) => hasLostListeners)) {
        this.#unwatched.add(keyOf(member, list))
        this.#refetch(member, list)
      }
  }

  #countListeners(upstream: UpstreamSubscription, lists: readonly ChangingList[]): void {
    const count = (list: ChangingList, by: 1 | -1): void => {
      for (const kind of LISTS[list])
        this.#context.catalog.countListener(upstream.member, this.#exchange.caller, kind, by)
    }
    for (const list of this.#counted.get(upstream) ?? []) count(list, -1)
    for (const list of lists) count(list, 1)
    this.#counted.set(upstream, lists)
  }

  #onFrame(member: Member, frame: Frame): void | Promise<void> {
    const { sink } = this.#exchange
    if (frame.kind === 'question') return sink(this.#context.isAggregate ? withServerName(frame, member.server) : frame)
    if (frame.kind !== 'notice') return
    const list = CHANGING_LISTS.find(each => LIST_CHANGES[each].method === frame.method)
    if (list) return this.#onListChanged(member, list)
    if (frame.method !== NOTIFICATIONS.resourceUpdated) return sink(frame)
    if (!this.#isVisible(member, frame.params.get('uri')?.asString() ?? '')) return
    const params = this.#withClientUri(member, frame.params)
    if (this.#isWatched(params.get('uri')?.asString() ?? '')) return sink({ ...frame, params })
  }

  /** After changes that no listener received, a change back to the cached list must be notified, too. */
  #onListChanged(member: Member, list: ChangingList): void {
    this.#context.announceChange?.(member.server, list)
    this.#refetch(member, list)
    if (!this.#unwatched.delete(keyOf(member, list))) return
    const { catalog, lists, shown } = this.#context
    const entries = this.#entries(member, list)
    // The client may list at once, and must not get the old list: the fetch comes first.
    void catalog.settle(entries.flatMap(({ pendingFetch }) => pendingFetch ?? [])).then(() => {
      const isFetched = entries.every(({ failure }) => failure === undefined)
      const { caller } = this.#exchange
      const showsAll = lists.rulesOf(caller).isOpen && !(list === 'tools' && shown.isShortened(caller))
      this.#notifier.schedule(list, isFetched && showsAll)
    })
  }

  /** Fetches a list that may have changed. Only a legacy session can have another list than its principal. */
  #refetch(member: Member, list: ChangingList): void {
    const { catalog, refetcher } = this.#context
    const { caller, signal } = this.#exchange
    const revision = catalog.discovery(member, caller).value?.revision
    const isForSession = caller.session !== undefined && revision !== undefined && !isModern(revision)
    for (const kind of LISTS[list])
      refetcher.schedule(catalog.markStale(member, caller, kind, isForSession), kind, caller, signal)
  }

  /** Notifies once, although both the subscription and the health check may find the recovery. */
  #recover(member: Member, list: ChangingList): void {
    const [key, now] = [keyOf(member, list), Date.now()]
    const isNew = now - (this.#recoveredAt.get(key) ?? Number.NEGATIVE_INFINITY) > RECOVERY_MS
    if (isNew) this.#recoveredAt.set(key, now)
    this.#refetch(member, list)
    const fetches = this.#entries(member, list).flatMap(({ pendingFetch }) => pendingFetch ?? [])
    void this.#context.catalog.settle(fetches).then(() => this.#notifier.schedule(list, isNew))
  }

  /** A session may have subscribed before the resource was hidden, or to its folder. */
  #isVisible({ server }: Member, uri: string): boolean {
    return this.#context.lists.rulesOf(this.#exchange.caller).allows('resources', server, uri)
  }

  #withClientUri(member: Member, params: Json): Json {
    const watched = this.#watched.get(member)
    const list = this.#context.lists.cached(this.#exchange.caller, 'resources')
    const aliases = list && uriAliasesOf(list).get(member.server)
    return rewriteUris(NOTIFICATIONS.resourceUpdated, params, uri => watched?.get(uri) ?? aliases?.get(uri))
  }

  /** A legacy session subscribes with `resources/subscribe`: its server sends only what it wants. */
  #isWatched(uri: string): boolean {
    if (!isModern(this.#exchange.caller.revision)) return true
    return [...this.#accepted].some(watched => isPartOf(uri, watched))
  }
}

/** Whether the client may have seen items of the list, or their absence. */
const wasSeen = ({ value, wasOmitted }: CacheEntry<MemberList>): boolean =>
  value ? value.items.length > 0 : wasOmitted

/** Whether the list was cached without a listener: it may have changed since. */
const isUnwatched = ({ value, listenerCount }: CacheEntry<MemberList>): boolean =>
  value !== undefined && listenerCount === 0
